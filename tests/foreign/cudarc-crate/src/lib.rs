//! Scales numbers on a GPU.

use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

/// `values[i] *= factor`, for the `n` values that there are.
const SCALE: &str = "
.version 7.0
.target sm_75
.address_size 64

.visible .entry scale(.param .u64 values, .param .f32 factor, .param .u32 n)
{
    .reg .pred %beyond;
    .reg .f32 %factor, %value;
    .reg .u32 %i, %block, %threads, %n;
    .reg .u64 %values, %offset;

    mov.u32 %i, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mad.lo.u32 %i, %block, %threads, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %beyond, %i, %n;
    @%beyond ret;

    ld.param.u64 %values, [values];
    cvta.to.global.u64 %values, %values;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %values, %values, %offset;
    ld.global.f32 %value, [%values];
    ld.param.f32 %factor, [factor];
    mul.rn.f32 %value, %value, %factor;
    st.global.f32 [%values], %value;
    ret;
}
";

/// Multiplies every value by `factor`, on the first GPU.
///
/// # Errors
/// When there is no GPU, or when it fails.
pub fn scale(values: &[f32], factor: f32) -> Result<Vec<f32>, DriverError> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let kernel = context.load_module(Ptx::from_src(SCALE))?.load_function("scale")?;
    let mut on_device = stream.clone_htod(values)?;
    let n = values.len() as u32;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&mut on_device).arg(&factor).arg(&n);
    // SAFETY: The kernel takes these arguments, and touches the first `n` values alone.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }?;
    stream.clone_dtoh(&on_device)
}
