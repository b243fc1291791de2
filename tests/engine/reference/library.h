// The kernels of a level, by name.
#pragma once

#include <dlfcn.h>

#include <stdexcept>

#include "interface.h"
#include "number.h"

class Library {
    void *handle;

  public:
    explicit Library(const char *path) : handle(dlopen(path, RTLD_NOW)) {
        if (!handle) throw std::runtime_error(dlerror());
    }
    // As `library.call("rms_norm", kernels::rms_norm_arguments<T>{...})`.
    template <template <typename> class Arguments, typename T>
    void call(const std::string &name, const Arguments<T> &arguments) const {
        void *function = dlsym(handle, (name + "_" + Format<T>::NAME).c_str());
        if (!function) throw std::runtime_error(dlerror());
        ((void (*)(const Arguments<T> *))function)(&arguments);
    }
};
