#include <nanobind/nanobind.h>

#include "isa.h"

namespace nb = nanobind;

NB_MODULE(_native, m) {
  m.doc() = "The compiled part of recurra.";
  m.def("isa", &recurra::selected_isa,
        "Name of the instruction set whose kernels this machine uses; the environment variable RECURRA_ISA overrides.");
}
