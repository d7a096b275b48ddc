#pragma once

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "recurra/kernels/namespace.h"

// The OpenMP team, or a team of one where there is no OpenMP.
namespace recurra {
inline namespace RECURRA_ISA {

#if defined(_OPENMP)
inline int team_size() { return omp_get_num_threads(); }
inline int team_rank() { return omp_get_thread_num(); }
inline void meet() {
#pragma omp barrier
}
#else
inline int team_size() { return 1; }
inline int team_rank() { return 0; }
inline void meet() {}
#endif

}  // namespace RECURRA_ISA
}  // namespace recurra
