// The kernels of a level, by name.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <type_traits>

#include "number.h"

class Library {
    void *handle;

    // As all kernels take it: memory, a 64-bit integer or a float.
    template <typename A> static auto plain(const A &argument) {
        if constexpr (std::is_same_v<A, float>)
            return argument;
        else if constexpr (std::is_integral_v<A>)
            return int64_t(argument);
        else if constexpr (std::is_null_pointer_v<A>)
            return (const void *)nullptr;
        else
            return (const void *)argument.data();
    }
    template <typename... A> void run(const std::string &name, A... arguments) const {
        void *function = dlsym(handle, name.c_str());
        if (!function) throw std::runtime_error(dlerror());
        ((void (*)(A...))function)(arguments...);
    }

  public:
    explicit Library(const char *path) : handle(dlopen(path, RTLD_NOW)) {
        if (!handle) throw std::runtime_error(dlerror());
    }
    template <typename T, typename... A> void call(const std::string &name, const A &...arguments) const {
        run(name + "_" + Format<T>::NAME, plain(arguments)...);
    }
};
