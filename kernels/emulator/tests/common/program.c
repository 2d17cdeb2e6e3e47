// A CUDA program as others write it: it knows the driver's interface and nothing else.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

static void *driver;
static CUresult (*getErrorName)(CUresult, const char **);

static void *find(const char *name) {
    void *function = dlsym(driver, name);
    if (!function) {
        printf("%s is missing\n", name);
        exit(2);
    }
    return function;
}

static void check(const char *what, CUresult result) {
    if (result) {
        const char *name = "?";
        getErrorName(result, &name);
        printf("%s: %s\n", what, name);
        exit(3);
    }
}

#define CALL(name, types, ...) check(#name, ((CUresult(*) types)find(#name))(__VA_ARGS__))

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(2);
    char *text = calloc(1, 1 << 16);
    size_t length = fread(text, 1, (1 << 16) - 1, file);
    text[length] = 0;
    fclose(file);
    return text;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        printf("%s\n", dlerror());
        return 2;
    }
    *(void **)&getErrorName = find("cuGetErrorName");

    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    char name[100];
    int major, minor;
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (CUdevice *, int), &device, 0);
    CALL(cuDeviceGetName, (char *, int, CUdevice), name, sizeof name, device);
    CALL(cuDeviceGetAttribute, (int *, int, CUdevice), &major, 75, device);
    CALL(cuDeviceGetAttribute, (int *, int, CUdevice), &minor, 76, device);
    printf("%s, compute capability %d.%d\n", name, major, minor);
    CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &context, device);
    CALL(cuCtxSetCurrent, (CUcontext), context);
    CALL(cuModuleLoadData, (CUmodule *, const void *), &module, read_file(argv[1]));
    CALL(cuModuleGetFunction, (CUfunction *, CUmodule, const char *), &function, module,
         strcmp(argv[2], "spin") ? "fill" : "spin");

    // 5 numbers, of which the kernel sets 4; or 5, of which it sets 6.
    unsigned n = strcmp(argv[2], "overrun") ? 4 : 6, value = 42, numbers[5];
    CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &memory, sizeof numbers);
    CALL(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t), memory, 0, 5);
    if (strcmp(argv[2], "cuda3")) {
        void *params[] = {&memory, &n, &value};
        CALL(cuLaunchKernel,
             (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
             function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
    } else {
        // The same, as CUDA 3 had it: one thing after the other.
        CALL(cuFuncSetBlockShape, (CUfunction, int, int, int), function, 32, 1, 1);
        CALL(cuFuncSetSharedSize, (CUfunction, unsigned), function, 0);
        CALL(cuParamSetv, (CUfunction, int, void *, unsigned), function, 0, &memory, sizeof memory);
        CALL(cuParamSeti, (CUfunction, int, unsigned), function, 8, n);
        CALL(cuParamSeti, (CUfunction, int, unsigned), function, 12, value);
        CALL(cuParamSetSize, (CUfunction, unsigned), function, 16);
        CALL(cuLaunchGrid, (CUfunction, int, int), function, 1, 1);
    }
    CALL(cuCtxSynchronize, (void), );
    CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), numbers, memory, sizeof numbers);
    printf("fill: %u %u %u %u %u\n", numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
    CALL(cuMemFree_v2, (CUdeviceptr), memory);
    CALL(cuModuleUnload, (CUmodule), module);
    CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice), device);
    return 0;
}
