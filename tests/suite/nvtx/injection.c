// An NVTX tool: writes each range that begins or ends to the file that NVTX_LOG names. What Nsight Systems and Nsight
// Compute see, without either and without a GPU. NVTX loads it because NVTX_INJECTION64_PATH names it.
//
// The numbers and types are NVTX 3's (nvtxTypes.h), which only ever grow.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPORT_CALLBACKS = 1, MODULE_CORE2 = 5 };
enum { PUSH = 4, POP = 5, REGISTER_STRING = 10, DOMAIN_CREATE = 12, FUNCTIONS };
enum { MESSAGE_ASCII = 1, MESSAGE_REGISTERED = 3 };

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} Attributes;

typedef struct {
    size_t size;
    int (*functions_of)(int module, void ****functions, unsigned *count);
} Callbacks;

static void say(const char *what, const char *domain, const char *name) {
    FILE *log = fopen(getenv("NVTX_LOG"), "a");
    if (log) {
        fprintf(log, "%s %s %s\n", what, domain, name);
        fclose(log);
    }
}

// A handle is the text that it stands for.
static void *domain_create(const char *name) { return strdup(name); }
static void *register_string(void *domain, const char *text) { return domain ? strdup(text) : 0; }

static int push(void *domain, const Attributes *attributes) {
    int registered = attributes->message_type == MESSAGE_REGISTERED;
    say(registered ? "push" : "push-unregistered", domain, attributes->message);
    return 0;
}

static int pop(void *domain) {
    say("pop", domain, "");
    return 0;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
    const Callbacks *callbacks = export_table(EXPORT_CALLBACKS);
    void ***functions;
    unsigned count;
    if (!callbacks || !callbacks->functions_of(MODULE_CORE2, &functions, &count) || count < FUNCTIONS) {
        return 0;
    }
    *functions[PUSH] = (void *)push;
    *functions[POP] = (void *)pop;
    *functions[REGISTER_STRING] = (void *)register_string;
    *functions[DOMAIN_CREATE] = (void *)domain_create;
    return 1;
}
