//! A module's variables in device memory: addresses, then initial values.

use std::{collections::HashMap, fmt::Display};

use super::{
    Global, LoadError,
    decode::{Decoded, invalid, size, type_bytes, unsupported},
    symbols::Symbols,
};
use crate::{
    memory::{Kind, Memory, host_available},
    ptx::ast::{Float, Init, InitValue, Linkage, Space, Variable},
};

/// Allocates and initialises the variables of a module. Whoever gets an error frees what `globals` holds.
pub(crate) fn place(
    symbols: &mut Symbols<'_>,
    memory: &Memory,
    globals: &mut HashMap<String, Global>,
) -> Decoded<()> {
    let outer = symbols.variables.iter().map(|variable| (variable.name.clone(), *variable));
    let inner = symbols.inner.iter();
    let inner = inner.map(|(function, variable)| (format!("{function}/{}", variable.name), *variable));
    let variables: Vec<_> = outer
        .chain(inner)
        .filter(|(_, variable)| matches!(variable.space, Space::Global | Space::Const))
        .collect();

    for (name, variable) in &variables {
        if variable.linkage == Linkage::Extern {
            continue;
        }
        let (bytes, _) = size(variable)?;
        let bytes = bytes.max(1);
        let kind = match variable.space {
            Space::Const => Kind::Constant,
            _ if variable.attributes.iter().any(|attribute| attribute.contains("managed")) => Kind::Managed,
            _ => Kind::Global,
        };
        if globals.contains_key(name) {
            // Blocks of a function may each have one of a name, but here they would share it.
            return Err(match name.contains('/') {
                true => unsupported(&format!("a second variable `{name}`")),
                false => invalid(&format!("`{name}` is defined twice")),
            });
        }
        let full = |error: &dyn Display| {
            LoadError::OutOfMemory(format!("placing variable `{name}` of {bytes} bytes: {error}"))
        };
        // Managed memory is the host's from the start.
        if kind == Kind::Managed && host_available().is_some_and(|host| bytes > host) {
            return Err(full(&"the host has not as many left"));
        }
        let address = memory.allocate(bytes, kind).map_err(|error| full(&error))?;
        globals.insert(name.clone(), Global { address, bytes });
        symbols.addresses.insert(name.clone(), (variable.space, address));
    }
    for (name, variable) in &variables {
        let Some(&Global { address, bytes }) = globals.get(name) else { continue };
        let pointer = memory
            .host_pointer(address, bytes)
            .map_err(|error| LoadError::Unsupported(format!("writing variable `{name}`: {error}")))?;
        // New memory of the device is zero, that of the host holds a pattern.
        if variable.attributes.iter().any(|attribute| attribute.contains("managed")) {
            // SAFETY: the allocation has `bytes` bytes, and no kernel of this module runs yet.
            unsafe { pointer.write_bytes(0, bytes as usize) };
        }
        // An initial value may give a few bytes of many.
        let mut image = Vec::new();
        if let Some(init) = &variable.init {
            let dimensions: Vec<u64> = variable
                .dimensions
                .iter()
                .copied()
                .chain(variable.vector.map(|lanes| Some(u64::from(lanes))))
                .map(|dimension| dimension.unwrap_or(0))
                .collect();
            write(init, variable, &dimensions, 0, bytes, &mut image, symbols)?;
        }
        // SAFETY: the image has at most the `bytes` bytes of the allocation, and no kernel of this module runs yet.
        unsafe { pointer.copy_from_nonoverlapping(image.as_ptr(), image.len()) };
    }
    Ok(())
}

/// Writes an initializer at `offset` elements.
fn write(
    init: &Init,
    variable: &Variable,
    dimensions: &[u64],
    offset: u64,
    room: u64,
    image: &mut Vec<u8>,
    symbols: &Symbols<'_>,
) -> Decoded<()> {
    match init {
        Init::List(inits) => {
            let (_, inner) = dimensions
                .split_first()
                .ok_or_else(|| invalid(&format!("`{}` is initialised with a list", variable.name)))?;
            // Values without braces of their own fill the inner dimensions in order.
            let nested = inits.iter().any(|init| matches!(init, Init::List(_)));
            let (inner, stride) = if nested {
                (inner, inner.iter().fold(1, |all: u64, dimension| all.saturating_mul(*dimension)))
            } else {
                (&[][..], 1)
            };
            for (index, init) in inits.iter().enumerate() {
                let offset = (index as u64).checked_mul(stride).and_then(|inner| offset.checked_add(inner));
                let offset = offset.ok_or_else(|| too_many(variable))?;
                write(init, variable, inner, offset, room, image, symbols)?;
            }
            Ok(())
        }
        Init::Value(value) => {
            let bytes = type_bytes(&variable.ty)? as usize;
            let bits = bits(value, bytes, symbols)?;
            let end = offset.checked_add(1).and_then(|elements| elements.checked_mul(bytes as u64));
            let end = end.filter(|end| *end <= room).ok_or_else(|| too_many(variable))? as usize;
            if image.len() < end {
                image.resize(end, 0);
            }
            image[end - bytes..end].copy_from_slice(&bits.to_le_bytes()[..bytes]);
            Ok(())
        }
    }
}

fn too_many(variable: &Variable) -> LoadError {
    invalid(&format!("`{}` has more initial values than elements", variable.name))
}

fn bits(value: &InitValue, bytes: usize, symbols: &Symbols<'_>) -> Decoded<u64> {
    Ok(match value {
        InitValue::Integer(value) => *value as u64,
        InitValue::Float(Float::F32(bits)) if bytes == 8 => f64::from(f32::from_bits(*bits)).to_bits(),
        InitValue::Float(Float::F32(bits)) => u64::from(*bits),
        InitValue::Float(Float::F64(bits)) if bytes == 8 => *bits,
        InitValue::Float(Float::F64(bits)) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
        InitValue::Field { .. } => {
            return Err(unsupported("a texture, sampler or surface reference"));
        }
        InitValue::Address { symbol, offset, mask, .. } => {
            let address = match symbols.addresses.get(symbol) {
                Some((_, address)) => *address,
                None => symbols.function_address(symbol).ok_or_else(|| {
                    unsupported(&format!("an initial value with the address of `{symbol}`"))
                })?,
            };
            let address = address.wrapping_add_signed(*offset);
            // `0xFF00(symbol)` is that byte of the address.
            mask.map_or(address, |mask| (address & mask) >> mask.trailing_zeros().min(63))
        }
    })
}
