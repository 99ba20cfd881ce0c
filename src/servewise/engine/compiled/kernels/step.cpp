// One step of a decoder of the Llama family in bfloat16, whole: from token ids to logits.
//
// The sum that runs through the layers, norms, rotations, softmax and every product's sums are float32; what is
// multiplied, and the cache, is bfloat16. Every row is computed in one order of operations, whatever rows are beside it
// and however its prompt was cut. Structures are mirrored in `structures.py`.
//
// Legend: T new tokens, R rows whose logits are wanted, E hidden size, D head size.

#include <cmath>
#include <vector>

#include "attention.h"
#include "product.h"
#include "team.h"

struct Layer {
    const float *attention_norm, *mlp_norm, *q_norm, *k_norm;  // the last two null where there are none
    Product qkv, output, gate_up, down;
};

struct Model {
    const bf16* embedding;
    const Layer* layers;
    const float* final_norm;
    Product head;
    int64_t layer_count, hidden, heads, kv_heads, head_dim, inner, vocabulary, rotated, window;  // window 0: none
    float epsilon;
};

struct Step {
    const int64_t *tokens, *slots, *query_starts, *contexts, *table_starts, *rows;
    const int32_t* tables;        // of all sequences back to back
    const float *cosines, *sines;  // (T, rotated), the sines with the rotation's sign
    int64_t token_count, sequence_count, row_count, block_tokens, block_count;
};

namespace {

struct Task {  // queries `first` to `first` + `count` - 1 of T, of one sequence; `position` is the first one's
    int64_t sequence, first, count, position;
};

constexpr int64_t TASK_QUERIES = 16;

std::vector<Task> tasks_of(const Step& step) {
    std::vector<Task> tasks;
    for (int64_t s = 0; s < step.sequence_count; ++s) {
        const int64_t start = step.query_starts[s], stop = step.query_starts[s + 1];
        const int64_t before = step.contexts[s] - (stop - start);
        for (int64_t first = start; first < stop; first += TASK_QUERIES)
            tasks.push_back({s, first, std::min(TASK_QUERIES, stop - first), before + first - start});
    }
    return tasks;
}

INLINE bool below(const int64_t* values, int64_t count, int64_t limit) {
    return std::all_of(values, values + count, [=](int64_t value) { return 0 <= value && value < limit; });
}

// Whether the step reads and writes only what is there.
bool sound(const Model& model, const Step& step) {
    for (int64_t s = 0; s < step.sequence_count; ++s) {
        const int64_t blocks = (step.contexts[s] + step.block_tokens - 1) / step.block_tokens;
        const int64_t start = step.table_starts[s], held = step.table_starts[s + 1] - start;
        const int64_t queries = step.query_starts[s + 1] - step.query_starts[s];
        if (blocks > held || queries < 0 || queries > step.contexts[s]) return false;
        for (int64_t i = start; i < start + blocks; ++i)
            if (step.tables[i] < 0 || step.tables[i] >= step.block_count) return false;
    }
    return step.query_starts[0] == 0 && step.query_starts[step.sequence_count] == step.token_count &&
        below(step.tokens, step.token_count, model.vocabulary) &&
        below(step.slots, step.token_count, step.block_count * step.block_tokens) &&
        below(step.rows, step.row_count, step.token_count);
}

int64_t padded(int64_t rows) { return (rows + 31) / 32 * 32; }

// Buffers of a step, cut from one piece of memory; `bytes` of it are needed.
struct Room {
    float *x, *wanted, *qkv;
    bf16 *normed, *queries, *attended, *inner;
    std::vector<Desk> desks;
    size_t bytes = 0;

    Room(const Model& model, const Step& step, int threads, char* memory) {
        const int64_t rows = padded(step.token_count);
        cut(memory, x, rows * model.hidden);
        cut(memory, wanted, padded(step.row_count) * model.hidden);
        cut(memory, qkv, rows * model.layers[0].qkv.outputs);
        cut(memory, normed, std::max(rows, padded(step.row_count)) * model.hidden);
        cut(memory, queries, rows * model.heads * model.head_dim);
        cut(memory, attended, rows * model.heads * model.head_dim);
        cut(memory, inner, std::max(rows, padded(step.row_count)) * model.inner);
        const Places places{model.kv_heads, model.head_dim, step.block_tokens};
        int64_t slots = 0;
        for (int64_t s = 0; s < step.sequence_count; ++s)
            slots = std::max(slots, (step.contexts[s] / step.block_tokens + 1) * places.groups() * LANES);
        desks.resize(threads);
        for (Desk& desk : desks) {
            desk.slots = slots;
            cut(memory, desk.scores, ATTENTION_ROWS * slots);
            cut(memory, desk.weights, ATTENTION_ROWS * slots);
            cut(memory, desk.sums, ATTENTION_ROWS * model.head_dim);
        }
    }

private:
    template <class T>
    void cut(char* memory, T*& piece, int64_t count) {
        piece = (T*)(memory + bytes);
        bytes += (count * sizeof(T) + 127) / 64 * 64;
    }
};

void embed(const Model& model, int64_t token, float* x) {
    const bf16* row = model.embedding + token * model.hidden;
    for (int64_t i = 0; i < model.hidden; i += LANES) store(x + i, widened(row + i));
}

// The factor that gives `count` values a root mean square of 1 (Zhang and Sennrich 2019).
INLINE float norm_factor(const float* x, int64_t count, float epsilon) {
    Lanes squares = {};
    for (int64_t i = 0; i < count; i += LANES) {
        const Lanes value = loaded<Lanes>(x + i);
        squares += value * value;
    }
    return 1.0f / std::sqrt(sum(squares) / float(count) + epsilon);
}

void norm(const float* x, const float* weight, int64_t count, float epsilon, bf16* normed) {
    const float factor = norm_factor(x, count, epsilon);
    for (int64_t i = 0; i < count; i += LANES)
        store(normed + i, narrowed(loaded<Lanes>(x + i) * factor * loaded<Lanes>(weight + i)));
}

// One head's values normed where the model has it so, turned to their position (Su et al. 2021; halves paired), rounded.
void turn(const Model& model, float* x, const float* weight, const float* cosines, const float* sines, bf16* turned) {
    const int64_t size = model.head_dim, rotated = model.rotated, half = rotated / 2;
    if (weight) {
        const float factor = norm_factor(x, size, model.epsilon);
        for (int64_t d = 0; d < size; ++d) x[d] *= factor * weight[d];
    }
    for (int64_t d = 0; d < half; ++d) {
        turned[d] = narrowed(x[d] * cosines[d] + x[d + half] * sines[d]);
        turned[d + half] = narrowed(x[d + half] * cosines[d + half] + x[d] * sines[d + half]);
    }
    for (int64_t d = rotated; d < size; ++d) turned[d] = narrowed(x[d]);
}

// Turns a token's queries and keys, and keeps keys and values.
void place(const Model& model, const Layer& layer, const Places& places, const Cache& cache, const Step& step, int64_t t, Room& room) {
    const int64_t size = model.head_dim;
    const float *cosines = step.cosines + t * model.rotated, *sines = step.sines + t * model.rotated;
    float* row = room.qkv + t * layer.qkv.outputs;
    for (int64_t head = 0; head < model.heads; ++head, row += size)
        turn(model, row, layer.q_norm, cosines, sines, room.queries + (t * model.heads + head) * size);
    std::vector<bf16> kept(2 * size);
    for (int64_t head = 0; head < model.kv_heads; ++head, row += size) {
        turn(model, row, layer.k_norm, cosines, sines, kept.data());
        const float* value = row + model.kv_heads * size;
        for (int64_t d = 0; d < size; ++d) kept[size + d] = narrowed(value[d]);
        keep(places, cache, step.slots[t], head, kept.data(), kept.data() + size);
    }
}

void attend_task(
    const Model& model, const Places& places, const Cache& cache, const Step& step, const Task& task, int64_t head,
    const Desk& desk, Room& room) {
    const int64_t size = model.head_dim, sharing = model.heads / model.kv_heads;
    const Lookup lookup{step.tables + step.table_starts[task.sequence], head, 1.0f / std::sqrt(float(size))};
    const bf16* queries[ATTENTION_ROWS];
    bf16* outs[ATTENTION_ROWS];
    Sight sights[ATTENTION_ROWS];
    int rows = 0;
    for (int64_t each = 0; each < task.count * sharing; ++each) {
        const int64_t query = each / sharing;
        const int64_t at = ((task.first + query) * model.heads + head * sharing + each % sharing) * size;
        queries[rows] = room.queries + at;
        outs[rows] = room.attended + at;
        const int64_t stop = task.position + query + 1;
        sights[rows] = {model.window ? std::max<int64_t>(stop - model.window, 0) : 0, stop};
        if (++rows == ATTENTION_ROWS || each + 1 == task.count * sharing) {
            attend(rows, places, cache, lookup, queries, sights, outs, desk);
            rows = 0;
        }
    }
}

// One thread's way through a step; all of a team go it together.
class Walk {
public:
    Walk(const Model& model, const Cache* caches, const Step& step, Room& room, const std::vector<Task>& tasks,
         std::atomic<int64_t>* taken, Meeting& meeting, float* logits, int thread, int threads)
        : model_(model), caches_(caches), step_(step), places_{model.kv_heads, model.head_dim, step.block_tokens},
          room_(room), tasks_(tasks), taken_(taken), meeting_(meeting), logits_(logits), thread_(thread),
          threads_(threads), x_(room.x), rows_(step.token_count) {}

    void go() {
        multiplier_.prepare(rows_);
        each_row([&](int64_t row) { embed(model_, step_.tokens[row], x_ + row * model_.hidden); });
        for (int64_t index = 0; index < model_.layer_count; ++index) {
            const Layer& layer = model_.layers[index];
            attention(layer, index);
            if (index + 1 == model_.layer_count) keep_wanted();
            mlp(layer);
        }
        normed(model_.final_norm);
        head();
        multiplier_.release();
    }

private:
    template <class Work>
    void each_row(Work work) {
        const Part mine = part(rows_, thread_, threads_);
        for (int64_t row = mine.start; row < mine.stop; ++row) work(row);
        meeting_.wait();
    }

    void normed(const float* weight) {
        const int64_t size = model_.hidden;
        each_row([&](int64_t row) {
            norm(x_ + row * size, weight, size, model_.epsilon, room_.normed + row * size);
        });
    }

    // Each thread takes some of the outputs, two blocks beside each other at a time.
    template <class Kept>
    void product(const Product& product, const bf16* x, Kept kept) {
        const Part mine = part(product.outputs / (2 * LANES), thread_, threads_);
        multiply(multiplier_, product, x, rows_, 2 * mine.start, 2, 1, mine.stop - mine.start,
            [&](int64_t row, int64_t block, Lanes left, Lanes right) {
                kept(row, block * LANES, left + biases(product, block));
                kept(row, (block + 1) * LANES, right + biases(product, block + 1));
            });
        meeting_.wait();
    }

    static Lanes biases(const Product& product, int64_t block) {
        return product.bias ? loaded<Lanes>(product.bias + block * LANES) : Lanes{};
    }

    void add_product(const Product& product, const bf16* x) {
        const int64_t size = model_.hidden;
        this->product(product, x, [&](int64_t row, int64_t output, Lanes value) {
            float* sum = x_ + row * size + output;
            store(sum, loaded<Lanes>(sum) + value);
        });
    }

    void attention(const Layer& layer, int64_t index) {
        normed(layer.attention_norm);
        const int64_t width = layer.qkv.outputs;
        product(layer.qkv, room_.normed, [&](int64_t row, int64_t output, Lanes value) {
            store(room_.qkv + row * width + output, value);
        });
        each_row([&](int64_t row) { place(model_, layer, places_, caches_[index], step_, row, room_); });
        const int64_t count = int64_t(tasks_.size()) * model_.kv_heads;
        for (int64_t next; (next = taken_[index].fetch_add(1)) < count;)
            attend_task(model_, places_, caches_[index], step_, tasks_[next / model_.kv_heads],
                next % model_.kv_heads, room_.desks[thread_], room_);
        meeting_.wait();
        add_product(layer.output, room_.attended);
    }

    void mlp(const Layer& layer) {
        normed(layer.mlp_norm);
        const int64_t blocks = model_.inner / LANES;
        const Part mine = part(blocks, thread_, threads_);
        multiply(multiplier_, layer.gate_up, room_.normed, rows_, mine.start, 1, blocks, mine.stop - mine.start,
            [&](int64_t row, int64_t block, Lanes gate, Lanes up) {
                gate += biases(layer.gate_up, block);
                up += biases(layer.gate_up, block + blocks);
                const Lanes silu = gate / (1.0f + exponential(-gate));
                store(room_.inner + row * model_.inner + block * LANES, narrowed(silu * up));
            });
        meeting_.wait();
        add_product(layer.down, room_.inner);
    }

    // From here on only the rows whose logits are wanted.
    void keep_wanted() {
        rows_ = step_.row_count;
        each_row([&](int64_t row) {
            const float* from = room_.x + step_.rows[row] * model_.hidden;
            std::copy(from, from + model_.hidden, room_.wanted + row * model_.hidden);
        });
        x_ = room_.wanted;
        multiplier_.prepare(rows_);
    }

    void head() {
        const int64_t vocabulary = model_.vocabulary;
        product(model_.head, room_.normed, [&](int64_t row, int64_t output, Lanes value) {
            float* logits = logits_ + row * vocabulary + output;
            if (output + LANES <= vocabulary)
                store(logits, value);
            else if (output < vocabulary)
                memcpy(logits, &value, (vocabulary - output) * sizeof(float));
        });
    }

    const Model& model_;
    const Cache* caches_;
    const Step& step_;
    const Places places_;
    Room& room_;
    const std::vector<Task>& tasks_;
    std::atomic<int64_t>* taken_;
    Meeting& meeting_;
    float* logits_;
    const int thread_, threads_;
    const Multiplier multiplier_{};
    float* x_;
    int64_t rows_;
};

}  // namespace

extern "C" {

// Bytes of working memory that a step needs.
int64_t servewise_room(const Model* model, const Step* step, int threads) {
    return int64_t(Room(*model, *step, threads, nullptr).bytes);
}

// The step: logits, (R, vocabulary), and the caches written; `memory` as much as servewise_room says, 64-aligned.
// False, and nothing done, where the step names a token, slot, block or row that is not there.
bool servewise_step(
    const Model* model, const Cache* caches, const Step* step, char* memory, float* logits, int threads) {
    if (!sound(*model, *step)) return false;
    Room room(*model, *step, threads, memory);
    const std::vector<Task> tasks = tasks_of(*step);
    std::vector<std::atomic<int64_t>> taken(model->layer_count);
    Meeting meeting;
#pragma omp parallel num_threads(threads)
    {
#pragma omp single
        meeting.open(omp_get_num_threads());
        Walk(*model, caches, *step, room, tasks, taken.data(), meeting, logits, omp_get_thread_num(),
             omp_get_num_threads())
            .go();
    }
    return true;
}

// y (rows, outputs) in bfloat16 of x (rows, inputs): one product alone.
void servewise_product(const Product* product, const bf16* x, int64_t rows, bf16* y, int64_t outputs, int threads) {
#pragma omp parallel num_threads(threads)
    {
        const Part mine = part(product->outputs / (2 * LANES), omp_get_thread_num(), omp_get_num_threads());
        const Multiplier multiplier;
        multiplier.prepare(rows);
        multiply(multiplier, *product, x, rows, 2 * mine.start, 2, 1, mine.stop - mine.start,
            [&](int64_t row, int64_t block, Lanes left, Lanes right) {
                for (int side = 0; side < 2; ++side) {
                    const int64_t output = (block + side) * LANES;
                    Lanes value = side ? right : left;
                    if (product->bias) value += loaded<Lanes>(product->bias + output);
                    const Halves rounded = narrowed(value);
                    if (output < outputs)
                        memcpy(y + row * outputs + output, &rounded, std::min<int64_t>(LANES, outputs - output) * 2);
                }
            });
        multiplier.release();
    }
}

// What multiplies: the widest instructions in use.
const char* servewise_instructions() {
#ifdef __AMX_BF16__
    if (tiles_granted()) return "AMX-BF16";
#endif
#if defined(__AVX512BF16__)
    return "AVX512-BF16";
#elif defined(__AVX512F__)
    return "AVX512";
#elif defined(__AVX2__)
    return "AVX2";
#else
    return "baseline";
#endif
}
}
