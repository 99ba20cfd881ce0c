// Threads that go through one step together.
#pragma once

#include <omp.h>
#include <sched.h>

#include <atomic>

#include "vector.h"

INLINE void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Threads meet here some 250 times a step, a microsecond apart: they spin, and yield where the core is wanted elsewhere.
class Meeting {
public:
    void open(int threads) { threads_ = threads; }

    void wait() {
        if (threads_ == 1) return;
        const int round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
            pause_briefly();
            if (spins > 2000) sched_yield();
        }
    }

private:
    int threads_ = 1;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int> round_{0};
};
