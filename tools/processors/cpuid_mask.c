/* An LD_AUDIT library that makes a program see an x86 processor with fewer instruction sets.

   The dynamic linker calls it for each library before the library's first instruction runs. Each CPUID
   instruction becomes a breakpoint (the first byte of two; the second becomes a NOP), and the signal handler
   answers as the chosen processor does. Everything else runs at native speed. Which bytes are CPUID
   instructions is known from a disassembly, which find_cpuid makes once for each library. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define BIT(n) (1u << (n))

/* leaf 1, ECX: FMA, XSAVE, OSXSAVE, AVX, F16C */
static const uint32_t avx_1_ecx = BIT(12) | BIT(26) | BIT(27) | BIT(28) | BIT(29);
/* leaf 7, EBX: BMI1, AVX2, BMI2 */
static const uint32_t avx_7_ebx = BIT(3) | BIT(5) | BIT(8);
/* leaf 7: AVX-512 in all its parts (VNNI is ECX 11), GFNI, VAES, VPCLMULQDQ, AMX */
static const uint32_t avx512_7_ebx =
    BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31);
static const uint32_t avx512_7_ecx =
    BIT(1) | BIT(6) | BIT(8) | BIT(9) | BIT(10) | BIT(11) | BIT(12) | BIT(14);
static const uint32_t avx512_7_edx =
    BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25);
/* leaf 0x80000001, ECX: XOP, FMA4 */
static const uint32_t avx_amd_ecx = BIT(11) | BIT(16);

static int sse_only;
static const char *offsets_folder, *finder;
static long page_size;

static void fail(const char *what, const char *library) {
    dprintf(2, "on_processor: %s: %s\n", what, library);
    _exit(126);
}

static void answer_cpuid(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint32_t leaf = registers[REG_RAX], subleaf = registers[REG_RCX], a, b, c, d;
    __cpuid_count(leaf, subleaf, a, b, c, d);
    if (leaf == 1 && sse_only) c &= ~avx_1_ecx;
    if (leaf == 7 && subleaf == 0) {
        b &= ~avx512_7_ebx;
        c &= ~avx512_7_ecx;
        d &= ~avx512_7_edx;
        if (sse_only) b &= ~avx_7_ebx;
    }
    if (leaf == 7 && subleaf > 0) a = b = c = d = 0; /* AVX-VNNI, AVX-IFMA, AVX10 */
    if (leaf == 0xd && sse_only) a = b = c = d = 0;  /* the state that XSAVE keeps */
    if (leaf == 0x80000001) c &= ~avx_amd_ecx;
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
}

/* Writes the offsets of `library` into `listed`; waits until it is done. */
static void find(const char *library, const char *listed) {
    char *arguments[] = {(char *)finder, (char *)library, (char *)listed, NULL};
    char *kept[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", NULL}; /* and no LD_AUDIT */
    pid_t child;
    int status = 0;
    if (posix_spawn(&child, finder, NULL, NULL, arguments, kept)) fail("cannot run find_cpuid for", library);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (status) fail("find_cpuid failed for", library);
}

static void patch(unsigned char *instruction) {
    if (instruction[0] != 0x0f || instruction[1] != 0xa2) return;
    uintptr_t first = (uintptr_t)instruction & -page_size;
    size_t length = (uintptr_t)instruction + 2 - first; /* the two bytes may lie in two pages */
    if (mprotect((void *)first, length, PROT_READ | PROT_WRITE | PROT_EXEC)) fail("mprotect refused", "code");
    instruction[0] = 0xcc;
    instruction[1] = 0x90;
    mprotect((void *)first, length, PROT_READ | PROT_EXEC);
}

unsigned la_version(unsigned version) {
    struct sigaction action = {0};
    const char *level = getenv("ON_PROCESSOR_LEVEL");
    action.sa_sigaction = answer_cpuid;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGTRAP, &action, NULL);
    offsets_folder = getenv("ON_PROCESSOR_OFFSETS");
    finder = getenv("ON_PROCESSOR_FINDER");
    if (!level || !offsets_folder || !finder) fail("started without", "tools/on_processor");
    sse_only = !strcmp(level, "sse");
    page_size = sysconf(_SC_PAGESIZE);
    return version;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    (void)space;
    (void)cookie;
    char library[4096], key[4096], listed[8192];
    struct stat file;
    const char *name = *map->l_name ? map->l_name : "/proc/self/exe";
    if (!realpath(name, library) || stat(library, &file)) return 0; /* the kernel's vDSO */
    strcpy(key, library);
    for (char *p = key; *p; p++) if (*p == '/') *p = '%';
    snprintf(listed, sizeof listed, "%s/%s-%lld-%lld.%09ld", offsets_folder, key, (long long)file.st_size,
             (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
    if (access(listed, R_OK)) find(library, listed);
    FILE *offsets = fopen(listed, "r");
    if (!offsets) fail("no list of the CPUID instructions of", library);
    unsigned long offset;
    while (fscanf(offsets, "%lx", &offset) == 1) patch((unsigned char *)map->l_addr + offset);
    fclose(offsets);
    return 0;
}
