//! What a CUDA 13.0 driver has and the emulated GPU has not. Each answers `CUDA_ERROR_NOT_SUPPORTED`, and says so once.

use super::{abi, abi::Symbol, error::CUresult, log};

/// Declares functions without their arguments, which the caller's side of a C call cleans up, under what they belong to.
macro_rules! unsupported {
    ($($topic:literal: $($since:literal $name:ident),+ $(,)?;)*) => {
        $( $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> CUresult {
                abi::enter(stringify!($name), true, || {
                    log::once(concat!(
                        stringify!($name), " is not supported: the emulated GPU has no ", $topic
                    ));
                    Err(CUresult::NOT_SUPPORTED)
                })
            }
        )+ )*

        /// What is declared here.
        pub(crate) const SYMBOLS: &[Symbol] = &[$( $( Symbol {
            name: stringify!($name),
            since: $since,
            address: || $name as *const () as usize,
        } ),+ ),*];
    };
}

unsupported! {
    "arrays, textures and surfaces":
        2000 cuArray3DCreate, 3020 cuArray3DCreate_v2, 2000 cuArray3DGetDescriptor,
        3020 cuArray3DGetDescriptor_v2, 2000 cuArrayCreate, 3020 cuArrayCreate_v2, 2000 cuArrayDestroy,
        2000 cuArrayGetDescriptor, 3020 cuArrayGetDescriptor_v2, 11060 cuArrayGetMemoryRequirements,
        11020 cuArrayGetPlane, 11010 cuArrayGetSparseProperties, 11010 cuDeviceGetTexture1DLinearMaxWidth,
        2000 cuMemcpyAtoA, 3020 cuMemcpyAtoA_v2, 7000 cuMemcpyAtoA_v2_ptds, 2000 cuMemcpyAtoD,
        3020 cuMemcpyAtoD_v2, 7000 cuMemcpyAtoD_v2_ptds, 2000 cuMemcpyAtoH, 2000 cuMemcpyAtoHAsync,
        3020 cuMemcpyAtoHAsync_v2, 7000 cuMemcpyAtoHAsync_v2_ptsz, 3020 cuMemcpyAtoH_v2,
        7000 cuMemcpyAtoH_v2_ptds, 2000 cuMemcpyDtoA, 3020 cuMemcpyDtoA_v2, 7000 cuMemcpyDtoA_v2_ptds,
        2000 cuMemcpyHtoA, 2000 cuMemcpyHtoAAsync, 3020 cuMemcpyHtoAAsync_v2, 7000 cuMemcpyHtoAAsync_v2_ptsz,
        3020 cuMemcpyHtoA_v2, 7000 cuMemcpyHtoA_v2_ptds, 5000 cuMipmappedArrayCreate,
        5000 cuMipmappedArrayDestroy, 5000 cuMipmappedArrayGetLevel,
        11060 cuMipmappedArrayGetMemoryRequirements, 11010 cuMipmappedArrayGetSparseProperties,
        3000 cuModuleGetSurfRef, 2000 cuModuleGetTexRef, 2000 cuParamSetTexRef, 5000 cuSurfObjectCreate,
        5000 cuSurfObjectDestroy, 5000 cuSurfObjectGetResourceDesc, 3000 cuSurfRefGetArray,
        3000 cuSurfRefSetArray, 5000 cuTexObjectCreate, 5000 cuTexObjectDestroy,
        5000 cuTexObjectGetResourceDesc, 5000 cuTexObjectGetResourceViewDesc, 5000 cuTexObjectGetTextureDesc,
        2000 cuTexRefCreate, 2000 cuTexRefDestroy, 2000 cuTexRefGetAddress, 2000 cuTexRefGetAddressMode,
        3020 cuTexRefGetAddress_v2, 2000 cuTexRefGetArray, 8000 cuTexRefGetBorderColor,
        2000 cuTexRefGetFilterMode, 2000 cuTexRefGetFlags, 2000 cuTexRefGetFormat,
        5000 cuTexRefGetMaxAnisotropy, 5000 cuTexRefGetMipmapFilterMode, 5000 cuTexRefGetMipmapLevelBias,
        5000 cuTexRefGetMipmapLevelClamp, 5000 cuTexRefGetMipmappedArray, 2000 cuTexRefSetAddress,
        2020 cuTexRefSetAddress2D, 3020 cuTexRefSetAddress2D_v2, 4010 cuTexRefSetAddress2D_v3,
        2000 cuTexRefSetAddressMode, 3020 cuTexRefSetAddress_v2, 2000 cuTexRefSetArray,
        8000 cuTexRefSetBorderColor, 2000 cuTexRefSetFilterMode, 2000 cuTexRefSetFlags, 2000 cuTexRefSetFormat,
        5000 cuTexRefSetMaxAnisotropy, 5000 cuTexRefSetMipmapFilterMode, 5000 cuTexRefSetMipmapLevelBias,
        5000 cuTexRefSetMipmapLevelClamp, 5000 cuTexRefSetMipmappedArray;

    "interprocess memory and events":
        4010 cuIpcCloseMemHandle, 4010 cuIpcGetEventHandle, 4010 cuIpcGetMemHandle, 4010 cuIpcOpenEventHandle,
        4010 cuIpcOpenMemHandle, 11000 cuIpcOpenMemHandle_v2, 10020 cuMemExportToShareableHandle,
        11070 cuMemGetHandleForAddressRange, 10020 cuMemImportFromShareableHandle, 11020 cuMemPoolExportPointer,
        11020 cuMemPoolExportToShareableHandle, 11020 cuMemPoolImportFromShareableHandle,
        11020 cuMemPoolImportPointer;

    "virtual memory management and multicast":
        10020 cuMemAddressFree, 10020 cuMemAddressReserve, 10020 cuMemCreate, 10020 cuMemGetAccess,
        10020 cuMemGetAllocationGranularity, 10020 cuMemGetAllocationPropertiesFromHandle, 10020 cuMemMap,
        11010 cuMemMapArrayAsync, 11010 cuMemMapArrayAsync_ptsz, 10020 cuMemRelease,
        11000 cuMemRetainAllocationHandle, 10020 cuMemSetAccess, 10020 cuMemUnmap, 12010 cuMulticastAddDevice,
        12010 cuMulticastBindAddr, 12010 cuMulticastBindMem, 12010 cuMulticastCreate,
        12010 cuMulticastGetGranularity, 12010 cuMulticastUnbind;

    "external memory and semaphores, and other hardware":
        10000 cuDestroyExternalMemory, 10000 cuDestroyExternalSemaphore, 10000 cuDeviceGetLuid,
        10020 cuDeviceGetNvSciSyncAttributes, 10000 cuExternalMemoryGetMappedBuffer,
        10000 cuExternalMemoryGetMappedMipmappedArray, 10000 cuImportExternalMemory,
        10000 cuImportExternalSemaphore, 10000 cuSignalExternalSemaphoresAsync,
        10000 cuSignalExternalSemaphoresAsync_ptsz, 10000 cuWaitExternalSemaphoresAsync,
        10000 cuWaitExternalSemaphoresAsync_ptsz;

    "graphics":
        3000 cuGraphicsMapResources, 7000 cuGraphicsMapResources_ptsz,
        5000 cuGraphicsResourceGetMappedMipmappedArray, 3000 cuGraphicsResourceGetMappedPointer,
        3020 cuGraphicsResourceGetMappedPointer_v2, 3000 cuGraphicsResourceSetMapFlags,
        6050 cuGraphicsResourceSetMapFlags_v2, 3000 cuGraphicsSubResourceGetMappedArray,
        3000 cuGraphicsUnmapResources, 7000 cuGraphicsUnmapResources_ptsz, 3000 cuGraphicsUnregisterResource;

    "green contexts and shares of the multiprocessors":
        12040 cuCtxFromGreenCtx, 12040 cuCtxGetDevResource, 11040 cuCtxGetExecAffinity,
        12040 cuDevResourceGenerateDesc, 12040 cuDevSmResourceSplitByCount, 12040 cuDeviceGetDevResource,
        12040 cuGreenCtxCreate, 12040 cuGreenCtxDestroy, 12040 cuGreenCtxGetDevResource, 12090 cuGreenCtxGetId,
        12040 cuGreenCtxRecordEvent, 12050 cuGreenCtxStreamCreate, 12040 cuGreenCtxWaitEvent,
        12040 cuStreamGetGreenCtx;

    "clusters of blocks and tensor maps":
        11070 cuOccupancyMaxActiveClusters, 11070 cuOccupancyMaxPotentialClusterSize,
        12000 cuTensorMapEncodeIm2col, 12080 cuTensorMapEncodeIm2colWide, 12000 cuTensorMapEncodeTiled,
        12000 cuTensorMapReplaceAddress;

    "memory operations and attributes of streams":
        8000 cuStreamBatchMemOp, 8000 cuStreamBatchMemOp_ptsz, 11070 cuStreamBatchMemOp_v2,
        11070 cuStreamBatchMemOp_v2_ptsz;

    "nodes of graphs beyond kernels, copies, fills, host functions, events and child graphs":
        11070 cuGraphAddBatchMemOpNode, 11020 cuGraphAddExternalSemaphoresSignalNode,
        11020 cuGraphAddExternalSemaphoresWaitNode, 11070 cuGraphBatchMemOpNodeGetParams,
        11070 cuGraphBatchMemOpNodeSetParams, 12030 cuGraphConditionalHandleCreate,
        11070 cuGraphExecBatchMemOpNodeSetParams, 11020 cuGraphExecExternalSemaphoresSignalNodeSetParams,
        11020 cuGraphExecExternalSemaphoresWaitNodeSetParams,
        11020 cuGraphExternalSemaphoresSignalNodeGetParams, 11020 cuGraphExternalSemaphoresSignalNodeSetParams,
        11020 cuGraphExternalSemaphoresWaitNodeGetParams, 11020 cuGraphExternalSemaphoresWaitNodeSetParams;

    "batches of copies, prefetches and discards":
        12060 cuMemBatchDecompressAsync, 12060 cuMemBatchDecompressAsync_ptsz, 12080 cuMemcpy3DBatchAsync,
        12080 cuMemcpy3DBatchAsync_ptsz, 13000 cuMemcpy3DBatchAsync_v2, 13000 cuMemcpy3DBatchAsync_v2_ptsz;

    "coredumps, checkpoints, logs and notifications":
        12080 cuCheckpointProcessCheckpoint, 12080 cuCheckpointProcessGetRestoreThreadId,
        12080 cuCheckpointProcessGetState, 12080 cuCheckpointProcessLock, 12080 cuCheckpointProcessRestore,
        12080 cuCheckpointProcessUnlock, 12040 cuDeviceRegisterAsyncNotification,
        12040 cuDeviceUnregisterAsyncNotification, 12090 cuLogsCurrent, 12090 cuLogsDumpToFile,
        12090 cuLogsDumpToMemory, 12090 cuLogsRegisterCallback, 12090 cuLogsUnregisterCallback;

    "atomics between processors":
        13000 cuDeviceGetHostAtomicCapabilities, 13000 cuDeviceGetP2PAtomicCapabilities;

    "managed variables and unified functions of libraries":
        12000 cuLibraryGetUnifiedFunction;

    "launches on several devices at once":
        9000 cuLaunchCooperativeKernelMultiDevice;

    "addresses of 32 bits, as CUDA 3.1 had them":
        2000 cuDeviceTotalMem, 2000 cuMemAlloc, 2000 cuMemAllocHost, 2000 cuMemAllocPitch, 2000 cuMemFree,
        2000 cuMemGetAddressRange, 2000 cuMemGetInfo, 2020 cuMemHostGetDevicePointer, 2000 cuMemcpy2D,
        2000 cuMemcpy2DAsync, 2000 cuMemcpy2DUnaligned, 2000 cuMemcpy3D, 2000 cuMemcpy3DAsync,
        2000 cuMemcpyDtoD, 3000 cuMemcpyDtoDAsync, 2000 cuMemcpyDtoH, 2000 cuMemcpyDtoHAsync, 2000 cuMemcpyHtoD,
        2000 cuMemcpyHtoDAsync, 2000 cuMemsetD16, 2000 cuMemsetD2D16, 2000 cuMemsetD2D32, 2000 cuMemsetD2D8,
        2000 cuMemsetD32, 2000 cuMemsetD8, 2000 cuModuleGetGlobal;
}
