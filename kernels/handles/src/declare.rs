//! The macros that declare a kernel.

/// Declares a kernel by the signature that its CUDA C++ has: an image and a module with a typed handle.
///
/// ```text
/// kernel! {
///     /// What it does.
///     NAME: fn name(a: &[f32; n], c: &mut [f32; n], n: u64, scale: f32);
///     shape = Shape::threads(n);
///     alignment = 16;            // only if it is more than the elements' own
/// }
/// ```
/// `&[T; length]` is `const T*`, `&mut [T; length]` is `T*`; a length is an expression of the integer parameters, checked
/// at each launch. `shape` is the launch shape that fits. A test holds the signature against the CUDA C++ and the PTX.
macro_rules! kernel {
    (
        $(#[$doc:meta])*
        $image:ident: fn $name:ident($($parameters:tt)*);
        shape = $shape:expr;
        $(alignment = $alignment:literal;)?
    ) => {
        kernel! { @parse [$($parameters)*] [] [] { [$(#[$doc])*] $image $name [$shape] [1 $(.max($alignment))?] } }
    };

    // Sorts the parameters: `[all] [integers]`.
    (@parse [$p:ident: &[$t:ty; $length:expr] $(, $($rest:tt)*)?] [$($all:tt)*] $integers:tt $to:tt) => {
        kernel! { @parse [$($($rest)*)?] [$($all)* {input $p $t; $length}] $integers $to }
    };
    (@parse [$p:ident: &mut [$t:ty; $length:expr] $(, $($rest:tt)*)?] [$($all:tt)*] $integers:tt $to:tt) => {
        kernel! { @parse [$($($rest)*)?] [$($all)* {output $p $t; $length}] $integers $to }
    };
    (@parse [$p:ident: f32 $(, $($rest:tt)*)?] [$($all:tt)*] $integers:tt $to:tt) => {
        kernel! { @parse [$($($rest)*)?] [$($all)* {scalar $p f32; 0}] $integers $to }
    };
    (@parse [$p:ident: f64 $(, $($rest:tt)*)?] [$($all:tt)*] $integers:tt $to:tt) => {
        kernel! { @parse [$($($rest)*)?] [$($all)* {scalar $p f64; 0}] $integers $to }
    };
    (@parse [$p:ident: $t:ty $(, $($rest:tt)*)?] [$($all:tt)*] [$($integers:tt)*] $to:tt) => {
        kernel! { @parse [$($($rest)*)?] [$($all)* {scalar $p $t; 0}] [$($integers)* $p] $to }
    };
    (@parse [] $all:tt $integers:tt { $doc:tt $image:ident $name:ident $shape:tt $alignment:tt }) => {
        kernel! { @declare $doc $image $name $all $integers $shape $alignment }
    };

    // A kernel without parameters.
    (@declare [$(#[$doc:meta])*] $image:ident $name:ident [] [] [$shape:expr] $alignment:tt) => {
        image! { @static [$(#[$doc])*] $image $name Some(&[]) }

        $(#[$doc])*
        pub mod $name {
            #[allow(unused_imports, reason = "a shape may be given without naming the type")]
            use crate::{Error, Handle, Shape};
            use cudarc::driver::{CudaContext, CudaStream, LaunchConfig};

            kernel! { @kernel $image }

            impl Kernel {
                /// Enqueues the kernel in the launch shape that fits.
                ///
                /// # Errors
                /// When the stream is another device's, or the driver refuses.
                pub fn launch(&self, stream: &CudaStream) -> Result<(), Error> {
                    let config = self.0.config($shape)?;
                    // SAFETY: a kernel without parameters touches nothing.
                    unsafe { self.launch_with(stream, config) }
                }

                /// As [`launch`](Self::launch), in a shape of the caller's.
                ///
                /// # Safety
                /// The kernel must be right for the shape: its source says which it takes.
                ///
                /// # Errors
                /// As [`launch`](Self::launch).
                pub unsafe fn launch_with(&self, stream: &CudaStream, config: LaunchConfig) -> Result<(), Error> {
                    self.0.check_stream(stream)?;
                    // SAFETY: there are no parameters.
                    unsafe { self.0.enqueue(stream, config, &mut []) }
                }
            }
        }
    };

    (
        @declare [$(#[$doc:meta])*] $image:ident $name:ident
        [$({$kind:ident $p:ident $t:ty; $length:expr})*] [$($integer:ident)*] [$shape:expr] [$alignment:expr]
    ) => {
        image! {
            @static [$(#[$doc])*] $image $name
            Some(&[$(crate::Parameter {
                name: stringify!($p),
                rust_type: kernel!(@written $kind $t),
                bytes: kernel!(@bytes $kind $t),
            }),*])
        }

        $(#[$doc])*
        pub mod $name {
            #[allow(unused_imports, reason = "a shape may be given without naming the type")]
            use crate::{Error, Handle, Shape};
            use cudarc::driver::{CudaContext, CudaStream, LaunchConfig};

            kernel! { @kernel $image }

            /// The arguments, by the names that they have in CUDA C++.
            pub struct Arguments<'a> {
                $(
                    #[doc = concat!("`", kernel!(@written $kind $t), "`", kernel!(@rule $kind $length))]
                    pub $p: kernel!(@field $kind 'a $t),
                )*
            }

            impl Kernel {
                /// Enqueues the kernel in the launch shape that fits the arguments.
                ///
                /// # Errors
                /// When a length or an alignment is wrong, the stream or an argument is another device's, the grid would
                /// be too large, or the driver refuses.
                #[inline]
                pub fn launch(&self, stream: &CudaStream, arguments: Arguments<'_>) -> Result<(), Error> {
                    $(
                        #[allow(unused_variables, reason = "the shape need not depend on every integer")]
                        let $integer = kernel!(@extent arguments.$integer);
                    )*
                    let config = self.0.config($shape)?;
                    // SAFETY: the shape is the one that the kernel's source asks for.
                    unsafe { self.launch_with(stream, config, arguments) }
                }

                /// As [`launch`](Self::launch), in a shape of the caller's.
                ///
                /// # Safety
                /// The kernel must be right for the shape: its source says which it takes.
                ///
                /// # Errors
                /// As [`launch`](Self::launch).
                #[inline]
                pub unsafe fn launch_with(
                    &self,
                    stream: &CudaStream,
                    config: LaunchConfig,
                    arguments: Arguments<'_>,
                ) -> Result<(), Error> {
                    self.0.check_stream(stream)?;
                    {
                        $(
                            #[allow(unused_variables, reason = "no length need depend on every integer")]
                            let $integer = kernel!(@extent arguments.$integer);
                        )*
                        $(kernel!(@check self arguments $kind $p $length);)*
                    }
                    // Each guard lives to the end of this function, so that cudarc learns of the uses after the launch.
                    $(kernel!(@value self stream arguments $kind $p $alignment);)*
                    let mut parameters = [$((&raw mut $p).cast::<std::ffi::c_void>()),*];
                    // SAFETY: the values have the types of the signature, which a test holds against the PTX. The slices are
                    // of this device and as long as the signature says, which is what the kernel touches in the shapes that
                    // it takes; cudarc frees them only after the work that their guards announce; and outputs are borrowed
                    // mutably.
                    unsafe { self.0.enqueue(stream, config, &mut parameters) }
                }
            }
        }
    };

    (@kernel $image:ident) => {
        /// The loaded kernel.
        #[derive(Debug)]
        pub struct Kernel(Handle);

        impl Kernel {
            /// Loads the kernel: the driver compiles its PTX for the device.
            ///
            /// # Errors
            /// When the driver refuses the PTX.
            pub fn load(context: &std::sync::Arc<CudaContext>) -> Result<Self, Error> {
                Handle::load(&super::$image, context).map(Self)
            }

            /// What lies behind: the driver's handle, the kernel's attributes.
            pub fn handle(&self) -> &Handle {
                &self.0
            }
        }
    };

    // Integer parameters as lengths and shapes count with them: wide enough that no product of two overflows.
    (@extent $value:expr) => { u128::from($value) };

    (@field input $a:lifetime $t:ty) => { &$a dyn cudarc::driver::DevicePtr<$t> };
    (@field output $a:lifetime $t:ty) => { &$a mut dyn cudarc::driver::DevicePtrMut<$t> };
    (@field scalar $a:lifetime $t:ty) => { $t };

    (@written input $t:ty) => { concat!("&[", stringify!($t), "]") };
    (@written output $t:ty) => { concat!("&mut [", stringify!($t), "]") };
    (@written scalar $t:ty) => { stringify!($t) };

    (@rule scalar $length:expr) => { "" };
    (@rule $kind:ident $length:expr) => { concat!(" of `", stringify!($length), "` elements") };

    (@bytes scalar $t:ty) => { size_of::<$t>() };
    (@bytes $kind:ident $t:ty) => { size_of::<cudarc::driver::sys::CUdeviceptr>() };

    (@check $self:ident $arguments:ident scalar $p:ident $length:expr) => {};
    (@check $self:ident $arguments:ident $kind:ident $p:ident $length:expr) => {
        $self.0.check_length(stringify!($p), $arguments.$p.len(), stringify!($length), $length)?;
    };

    (@value $self:ident $stream:ident $arguments:ident scalar $p:ident $alignment:expr) => {
        let mut $p = $arguments.$p;
    };
    (@value $self:ident $stream:ident $arguments:ident $kind:ident $p:ident $alignment:expr) => {
        let (mut $p, _guard) = $self.0.$kind(stringify!($p), $arguments.$p, $stream, $alignment)?;
    };
}

/// Declares a kernel that is launched by hand alone: an image and no handle.
macro_rules! image {
    ($(#[$doc:meta])* $image:ident: $name:ident;) => {
        image! { @static [$(#[$doc])*] $image $name None }
    };
    (@static [$(#[$doc:meta])*] $image:ident $name:ident $parameters:expr) => {
        $(#[$doc])*
        pub static $image: crate::Image = crate::Image::new(
            concat!(stringify!($name), "\0"),
            concat!(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../ptx/", stringify!($name), ".ptx")), "\0"),
            $parameters,
        );
    };
}
