#pragma once

namespace recurra {

// The instruction set whose kernels this process uses: the fastest that the machine has, or the one that the
// environment variable RECURRA_ISA names (empty counts as unset). The string is static.
// Throws std::invalid_argument if RECURRA_ISA is not a known name or the machine lacks that instruction set.
const char* selected_isa();

}  // namespace recurra
