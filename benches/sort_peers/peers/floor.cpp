// The minimal work of a two-pass sort, for uniform keys: INPUT OUTPUT_DIR
// SCRATCH_DIR MEMORY_MB. Pass one reads the records once and appends each to the range of keys it
// falls in; pass two reads a range, sorts it and writes it. No sampling, no skew, no checks: a lower
// bound for comparison, not a program to use.
//
// Two thirds of the memory are the passes' buffers; the page cache has the rest.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kRecord = 100;
constexpr size_t kRead = 40'000 * kRecord;   // 4 MB: one read of the input, one write of the output
constexpr size_t kWrite = 10'000 * kRecord;  // 1 MB: one append to a range
constexpr size_t kLeastRanges = 16;          // with fewer, two threads end unevenly

struct Entry {  // ten key bytes and the record's position: pass two sorts these instead of records
    uint64_t head;
    uint16_t tail;
    uint32_t index;
};

struct Range {
    int file = -1;
    std::atomic<size_t> size{0};
};

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

int open_or_die(const std::string& path, int flags) {
    int file = open(path.c_str(), flags, 0644);
    if (file < 0) die(path.c_str());
    return file;
}

void read_at(int file, uint8_t* to, size_t count, size_t offset) {
    while (count > 0) {
        ssize_t done = pread(file, to, count, offset);
        if (done <= 0) die("read");
        to += done, count -= done, offset += done;
    }
}

void write_at(int file, const uint8_t* from, size_t count, size_t offset) {
    while (count > 0) {
        ssize_t done = pwrite(file, from, count, offset);
        if (done <= 0) die("write");
        from += done, count -= done, offset += done;
    }
}

uint64_t key_head(const uint8_t* record) {
    uint64_t head;
    std::memcpy(&head, record, sizeof head);
    return __builtin_bswap64(head);
}

uint16_t key_tail(const uint8_t* record) { return record[8] << 8 | record[9]; }

void on_every_thread(unsigned threads, const std::function<void()>& work) {
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; i++) running.emplace_back(work);
    for (auto& thread : running) thread.join();
}

void append(Range& range, std::vector<uint8_t>& records) {
    write_at(range.file, records.data(), records.size(), range.size.fetch_add(records.size()));
    records.clear();
}

void partition(int input, size_t bytes, std::vector<Range>& ranges, std::atomic<size_t>& next) {
    std::vector<uint8_t> chunk(kRead);
    std::vector<std::vector<uint8_t>> pending(ranges.size());
    for (auto& records : pending) records.reserve(kWrite);
    for (size_t at; (at = next.fetch_add(kRead)) < bytes;) {
        size_t count = std::min(kRead, bytes - at);
        read_at(input, chunk.data(), count, at);
        for (const uint8_t* record = chunk.data(); record < chunk.data() + count; record += kRecord) {
            size_t owner = static_cast<unsigned __int128>(key_head(record)) * ranges.size() >> 64;
            pending[owner].insert(pending[owner].end(), record, record + kRecord);
            if (pending[owner].size() == kWrite) append(ranges[owner], pending[owner]);
        }
    }
    for (size_t i = 0; i < ranges.size(); i++) append(ranges[i], pending[i]);
}

// The buffers are the thread's, kept from range to range: fresh memory costs a page fault each 4 KB.
struct Hands {
    std::vector<uint8_t> records;
    std::vector<Entry> entries;
    std::vector<uint8_t> sorted = std::vector<uint8_t>(kRead);
};

void sort_range(const Range& range, const std::string& output, Hands& hands) {
    auto& [records, entries, sorted] = hands;
    records.resize(range.size);
    read_at(range.file, records.data(), records.size(), 0);
    entries.resize(records.size() / kRecord);
    for (size_t i = 0; i < entries.size(); i++) {
        const uint8_t* record = &records[i * kRecord];
        entries[i] = {key_head(record), key_tail(record), static_cast<uint32_t>(i)};
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.head != b.head ? a.head < b.head : a.tail < b.tail;
    });

    int file = open_or_die(output, O_WRONLY | O_CREAT | O_TRUNC);
    size_t written = 0, filled = 0;
    for (const Entry& entry : entries) {
        std::memcpy(&sorted[filled], &records[entry.index * kRecord], kRecord);
        filled += kRecord;
        if (filled == kRead) {
            write_at(file, sorted.data(), filled, written);
            written += filled, filled = 0;
        }
    }
    write_at(file, sorted.data(), filled, written);
    if (close(file) != 0) die(output.c_str());
}

std::string numbered(const char* directory, const char* name, size_t number) {
    std::string digits = std::to_string(number);
    return std::string(directory) + "/" + name + "-" + std::string(5 - digits.size(), '0') + digits;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        std::fprintf(stderr, "usage: floor INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB\n");
        return 2;
    }
    const char *output = arguments[2], *scratch = arguments[3];
    const size_t memory = std::strtoull(arguments[4], nullptr, 10) << 20;
    int input = open_or_die(arguments[1], O_RDONLY);
    struct stat status;
    if (fstat(input, &status) != 0) die(arguments[1]);
    const size_t bytes = status.st_size;

    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) die("sched_getaffinity");
    const unsigned threads = CPU_COUNT(&allowed);
    const size_t held = threads * (bytes + bytes / kRecord * sizeof(Entry));
    std::vector<Range> ranges(std::max(kLeastRanges, held / (memory * 2 / 3) + 1));
    for (size_t i = 0; i < ranges.size(); i++) {
        ranges[i].file = open_or_die(numbered(scratch, "range", i), O_RDWR | O_CREAT | O_TRUNC);
    }

    std::atomic<size_t> next{0};
    on_every_thread(threads, [&] { partition(input, bytes, ranges, next); });

    std::atomic<size_t> turn{0};
    on_every_thread(threads, [&] {
        Hands hands;
        for (size_t i; (i = turn++) < ranges.size();) {
            sort_range(ranges[i], numbered(output, "part", i), hands);
            close(ranges[i].file);
            unlink(numbered(scratch, "range", i).c_str());
        }
    });
}
