//! Units on their way through a claim.

use std::collections::BTreeMap;

/// What a number counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unit {
    /// A literal, which adopts its neighbour's unit.
    Bare,
    /// Powers of symbols: `GB/s` is GB¹ s⁻¹. Empty for a count or a ratio.
    Of(BTreeMap<String, i32>),
}

impl Unit {
    /// `GB/s`, `instructions`, `1/s`; no scaling, so `ms` and `s` are different.
    pub(super) fn parse(text: &str) -> Unit {
        let mut powers = BTreeMap::new();
        for (place, part) in text.split('/').enumerate() {
            for symbol in part.split(|c: char| c.is_whitespace() || c == '*' || c == '·') {
                if !symbol.is_empty() && symbol != "1" {
                    *powers.entry(symbol.to_owned()).or_insert(0) += if place == 0 { 1 } else { -1 };
                }
            }
        }
        powers.retain(|_, power| *power != 0);
        Unit::Of(powers)
    }

    /// The unit of a sum or a comparison.
    pub(super) fn agree(&self, other: &Unit, operation: &str) -> Result<Unit, String> {
        match (self, other) {
            (Unit::Bare, unit) | (unit, Unit::Bare) => Ok(unit.clone()),
            (a, b) if a == b => Ok(a.clone()),
            (a, b) => Err(format!("mixed units: {a} {operation} {b}")),
        }
    }

    /// The unit of a product (sign 1) or a quotient (sign −1).
    pub(super) fn combine(&self, other: &Unit, sign: i32) -> Unit {
        let (a, b) = match (self, other) {
            (Unit::Bare, Unit::Bare) => return Unit::Bare,
            (Unit::Bare, Unit::Of(b)) => (BTreeMap::new(), b.clone()),
            (Unit::Of(a), Unit::Bare) => (a.clone(), BTreeMap::new()),
            (Unit::Of(a), Unit::Of(b)) => (a.clone(), b.clone()),
        };
        let mut powers = a;
        for (symbol, power) in b {
            *powers.entry(symbol).or_insert(0) += sign * power;
        }
        powers.retain(|_, power| *power != 0);
        Unit::Of(powers)
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unit::Of(powers) = self else { return f.write_str("a bare number") };
        let side = |sign: i32| {
            let symbols = powers.iter().filter(|(_, power)| **power * sign > 0);
            let symbols: Vec<String> = symbols
                .map(|(symbol, power)| match power.abs() {
                    1 => symbol.clone(),
                    power => format!("{symbol}^{power}"),
                })
                .collect();
            symbols.join("·")
        };
        match (side(1), side(-1)) {
            (above, below) if above.is_empty() && below.is_empty() => f.write_str("a count or ratio"),
            (above, below) if below.is_empty() => f.write_str(&above),
            (above, below) if above.is_empty() => write!(f, "1/{below}"),
            (above, below) => write!(f, "{above}/{below}"),
        }
    }
}
