// Threads that go through one step together.
#pragma once

#include <linux/futex.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "vector.h"

INLINE void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Threads meet here some 250 times a step, microseconds apart, so they spin at first. Who waits longer waits for a thread
// that has lost its core to another program: it sleeps, which leaves its own core to that one.
class Meeting {
public:
    void open(int threads) { threads_ = threads; }

    void wait() {
        if (threads_ == 1) return;
        const int round = round_.load();
        if (arrived_.fetch_add(1) + 1 == threads_) {
            arrived_.store(0);
            round_.store(round + 1);
            if (sleeping_.load()) futex(FUTEX_WAKE_PRIVATE, threads_);
            return;
        }
        for (int spins = 0; spins < SPINS; ++spins) {
            if (round_.load(std::memory_order_acquire) != round) return;
            pause_briefly();
        }
        sleeping_.fetch_add(1);
        while (round_.load() == round) futex(FUTEX_WAIT_PRIVATE, round);
        sleeping_.fetch_sub(1);
    }

private:
    static constexpr int SPINS = 1000;

    void futex(int what, int value) { syscall(SYS_futex, &round_, what, value, nullptr, nullptr, 0); }

    int threads_ = 1;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int> round_{0};
    std::atomic<int> sleeping_{0};
};
