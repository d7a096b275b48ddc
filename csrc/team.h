#pragma once

// Several threads on one call: OpenMP's team, shared with the other libraries of the process, or where there is no
// OpenMP threads of our own.
namespace recurra {

// A team for some work, and the nanoseconds that it should take; 0 when nobody knows.
struct Team {
  int threads;
  double expected;
};

// body(context, rank, size) on every member of a team of at most so many; returns when all are done. Inside of another
// team, or in a process that was forked from one with a team, the caller is alone.
void run_team(const Team& team, void (*body)(void* context, int rank, int size), void* context);

// Where other programs keep the cores busy, the members of a team wait for each other's turns of a core, some
// milliseconds each: a call that should take less had better stay on its own thread. This is for a while after a call
// took far longer than it should, and for longer each time that it does again.
bool is_crowded();

// How many threads a team has by default: the environment variable RECURRA_NUM_THREADS, or as many as OpenMP (or the
// machine) has. -1 when the variable is not a number from 1 on.
int default_threads();

// For the child of a fork, which has none of its parent's threads.
void forget_team();

// The same for anything that is called with (rank, size).
template <class F>
void run_team(const Team& team, F f) {
  run_team(team, [](void* context, int rank, int size) { (*static_cast<F*>(context))(rank, size); }, &f);
}

}  // namespace recurra
