// Checks the kernels of one library against plain formulas: `reference LIBRARY`. Ends with 1 where one is wrong.
#include "kernels.h"

#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>
// The registers of AMX, which a process has only on request.
static void ask_for_matrices() { syscall(SYS_arch_prctl, 0x1023, 18); }
#else
static void ask_for_matrices() {}
#endif

template <typename T> bool check_all(const Library &library) {
    using Kernel = bool (*)(const Library &);
    const Kernel checks[] = {check_product<T>, check_transpose<T>,        check_pack_adapter<T>,    check_attention<T>,
                             check_cached_attention<T>, check_rms_norm<T>, check_rotary<T>,         check_swiglu<T>,
                             check_target_logprobs<T>,  check_draw<T>,     check_dropout<T>,        check_outer<T>};
    bool is_right = true;
    for (Kernel check : checks) is_right &= check(library);
    return is_right;
}

int main(int count, char **arguments) {
    if (count != 2) return std::fprintf(stderr, "usage: %s LIBRARY\n", arguments[0]), 2;
    ask_for_matrices();
    try {
        Library library(arguments[1]);
        bool in_float32 = check_all<float>(library), in_bfloat16 = check_all<bf16>(library);
        return in_float32 && in_bfloat16 ? 0 : 1;
    } catch (const std::runtime_error &error) {
        return std::fprintf(stderr, "%s\n", error.what()), 2;
    }
}
