#include "trace/snapshot_export.h"

#include <algorithm>
#include <unordered_map>

#include "trace/maxima.h"
#include "trace/segments.h"

namespace peakbench::trace {
namespace {

// What the frames of a stack say.
struct Origin {
  std::int32_t name, op, module;
  Phase phase;
  std::int32_t step;
  bool operator==(const Origin&) const = default;
};

struct OriginHash {
  std::size_t operator()(const Origin& origin) const {
    std::uint64_t hash = 0;
    for (const std::int32_t part : {origin.name, origin.op, origin.module,
                                    static_cast<std::int32_t>(origin.phase), origin.step})
      hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9E3779B97F4A7C15ULL;
    return hash >> 16U;
  }
};

// Writes one snapshot; every word and every stack of frames only once.
class Snapshot {
 public:
  Snapshot(const Trace& trace, const std::vector<Lifetime>& lifetimes, OutputFile& file)
      : trace_(trace),
        lifetimes_(lifetimes),
        owners_(lifetime_of_event(trace, lifetimes)),
        pickle_(file) {
    for (std::size_t space = 0; space < trace.spaces.size(); ++space)
      synthesised_.push_back(synthesised_segments(trace, lifetimes, static_cast<int>(space)));
  }

  void write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    write_segments();
    pickle_.text("device_traces");
    pickle_.begin_list();
    for (std::size_t space = 0; space < trace_.spaces.size(); ++space) {
      pickle_.item();
      write_trace(static_cast<int>(space));
    }
    pickle_.end_list();
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    pickle_.end_dict();
    pickle_.text("peakbench");
    write_origin();
    pickle_.end_dict();
    pickle_.stop();
  }

 private:
  using Word = PickleWriter::Word;

  void write_origin() {
    pickle_.begin_dict();
    pickle_.text("device");
    pickle_.text(valid_utf8(trace_.device));
    pickle_.text("emulated");
    pickle_.boolean(trace_.emulated);
    pickle_.text("time_us");
    pickle_.text(trace_.emulated ? kNumbered : "since the first event");
    pickle_.text("spaces");
    pickle_.begin_list();
    for (const auto& space : trace_.spaces) {
      pickle_.item();
      pickle_.text(valid_utf8(space));
    }
    pickle_.end_list();
    pickle_.text("own_space");
    pickle_.integer(trace_.own_space);
    pickle_.end_dict();
  }

  struct Block {
    std::uint64_t address;
    std::int64_t bytes, requested_bytes;
    bool pending;  // freed, while a stream still uses it
    std::uint64_t event;
  };

  // In order of address.
  std::vector<Block> blocks_at_end(int space) const {
    std::vector<Block> blocks;
    for (const auto& lifetime : lifetimes_) {
      const auto& alloc = trace_.events[lifetime.first];
      if (alloc.space != space || lifetime.released != trace_.events.size()) continue;
      blocks.push_back({alloc.address, alloc.block_bytes, alloc.requested_bytes,
                        lifetime.last != trace_.events.size(), lifetime.first});
    }
    std::sort(blocks.begin(), blocks.end(),
              [](const Block& a, const Block& b) { return a.address < b.address; });
    return blocks;
  }

  void write_segments() {
    pickle_.begin_list();
    for (std::size_t space = 0; space < trace_.spaces.size(); ++space) {
      SegmentMap recorded;
      for (const auto& event : trace_.events)
        if (event.space == static_cast<int>(space)) recorded.take(event);
      auto segments = recorded.segments();
      segments.insert(segments.end(), synthesised_[space].begin(), synthesised_[space].end());
      const auto blocks = blocks_at_end(static_cast<int>(space));
      for (const auto& segment : segments) {
        pickle_.item();
        write_segment(segment, blocks, static_cast<int>(space));
      }
    }
    pickle_.end_list();
  }

  void write_segment(const Segment& segment, const std::vector<Block>& all, int space) {
    const auto end = segment.address + static_cast<std::uint64_t>(segment.bytes);
    const auto by_address = [](const Block& block, std::uint64_t address) {
      return block.address < address;
    };
    const auto first = std::lower_bound(all.begin(), all.end(), segment.address, by_address);
    const auto last = std::lower_bound(first, all.end(), end, by_address);
    std::int64_t allocated = 0, active = 0, requested = 0;
    for (auto block = first; block != last; ++block) {
      active += block->bytes;
      allocated += block->pending ? 0 : block->bytes;
      requested += block->requested_bytes;
    }
    constexpr std::int64_t kSmallSegment = 2 << 20;  // c10/core/AllocatorConfig.h: kSmallBuffer
    pickle_.begin_dict();
    field(words_.device, space);
    field(words_.address, static_cast<std::int64_t>(segment.address));
    field(words_.total_size, segment.bytes);
    field(words_.allocated_size, allocated);
    field(words_.active_size, active);
    field(words_.requested_size, requested);
    field(words_.stream, segment.stream);
    field(words_.segment_type, segment.bytes > kSmallSegment ? words_.large : words_.small);
    pickle_.text(words_.segment_pool_id);
    pickle_.pair(0, 0);
    pickle_.text(words_.is_expandable);
    pickle_.boolean(segment.expandable);
    pickle_.text(words_.frames);
    no_frames();
    pickle_.text(words_.blocks);
    pickle_.begin_list();
    auto at = segment.address;
    for (auto block = first; block != last; ++block) {
      write_gap(at, block->address);
      write_block(*block);
      at = block->address + static_cast<std::uint64_t>(block->bytes);
    }
    write_gap(at, end);
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_gap(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    pickle_.item();
    pickle_.begin_dict();
    field(words_.address, static_cast<std::int64_t>(begin));
    field(words_.size, static_cast<std::int64_t>(end - begin));
    field(words_.requested_size, std::int64_t{0});
    field(words_.state, words_.inactive);
    pickle_.text(words_.frames);
    no_frames();
    pickle_.end_dict();
  }

  void write_block(const Block& block) {
    pickle_.item();
    pickle_.begin_dict();
    field(words_.address, static_cast<std::int64_t>(block.address));
    field(words_.size, block.bytes);
    field(words_.requested_size, block.requested_bytes);
    field(words_.state, block.pending ? words_.active_pending_free : words_.active_allocated);
    pickle_.text(words_.frames);
    frames(block.event);
    pickle_.end_dict();
  }

  void write_trace(int space) {
    pickle_.begin_list();
    for (const auto& segment : synthesised_[static_cast<std::size_t>(space)]) {
      Event event;
      event.address = segment.address;
      event.time_ns = 0;
      begin_entry(words_.segment_alloc, event, segment.bytes, 0);
      end_entry();
    }
    for (std::uint64_t i = 0; i < trace_.events.size(); ++i)
      if (trace_.events[i].space == space) write_event(i);
    write_mark();
    pickle_.end_list();
  }

  void write_event(std::uint64_t number) {
    const auto& event = trace_.events[number];
    const auto owner = owners_[number];
    if (owner != kNone)
      return write_block_event(number, lifetimes_[static_cast<std::size_t>(owner)]);
    switch (event.kind) {
      case EventKind::kSegmentAlloc:
        return entry(words_.segment_alloc, number);
      case EventKind::kSegmentFree:
        return entry(words_.segment_free, number);
      case EventKind::kSegmentMap:
        return entry(words_.segment_map, number);
      case EventKind::kSegmentUnmap:
        return entry(words_.segment_unmap, number);
      case EventKind::kOutOfMemory:
        return write_out_of_memory(number);
      default:
        return;  // of address 0: nothing was allocated
    }
  }

  void write_block_event(std::uint64_t number, const Lifetime& lifetime) {
    const auto& alloc = trace_.events[lifetime.first];
    const auto write = [&](Word& action) {
      begin_entry(action, trace_.events[number], alloc.requested_bytes, number);
      pickle_.text(words_.category);
      pickle_.text(categories_[static_cast<std::size_t>(lifetime.category)]);
      pickle_.text(words_.frames);
      frames(lifetime.first);
      end_entry();
    };
    if (number == lifetime.first) return write(words_.alloc);
    // The CPU knows only the one free.
    if (number == lifetime.last) write(words_.free_requested);
    if (number == lifetime.released) write(words_.free_completed);
  }

  void entry(Word& action, std::uint64_t number) {
    begin_entry(action, trace_.events[number], trace_.events[number].block_bytes, number);
    pickle_.text(words_.frames);
    frames(number);
    end_entry();
  }

  void write_out_of_memory(std::uint64_t number) {
    const auto& event = trace_.events[number];
    begin_entry(words_.oom, event, event.requested_bytes, number);
    field(words_.device_free, static_cast<std::int64_t>(event.address));
    pickle_.text(words_.frames);
    frames(number);
    end_entry();
  }

  // MemoryViz.js of some versions needs an entry of the category `unknown`.
  void write_mark() {
    Event event;
    event.time_ns = trace_.events.empty() ? 0 : trace_.events.back().time_ns;
    begin_entry(words_.snapshot, event, 0, trace_.events.size());
    pickle_.text(words_.category);
    pickle_.text(words_.unknown);
    pickle_.text(words_.frames);
    pickle_.begin_list();
    if (trace_.emulated) frame(words_.peakbench, 0, words_.numbered);
    pickle_.end_list();
    end_entry();
  }

  void begin_entry(Word& action, const Event& event, std::int64_t bytes, std::uint64_t number) {
    pickle_.item();
    pickle_.begin_dict();
    pickle_.text(words_.action);
    pickle_.text(action);
    field(words_.addr, static_cast<std::int64_t>(event.address));
    field(words_.size, bytes);
    field(words_.stream, event.stream);
    field(words_.time_us,
          trace_.emulated ? static_cast<std::int64_t>(number) : event.time_ns / 1000);
  }
  void end_entry() { pickle_.end_dict(); }

  // The innermost first, as in a stack.
  void frames(std::uint64_t number) {
    const auto& event = trace_.events[number];
    const auto owner = owners_[number];
    const auto name = owner == kNone ? kNone : lifetimes_[static_cast<std::size_t>(owner)].name;
    auto& stack = stacks_[{name, event.op, event.module, event.phase, event.step}];
    if (pickle_.again(stack)) return;
    pickle_.begin_list();
    if (name != kNone) {
      const auto& named = trace_.names[static_cast<std::size_t>(name)];
      Word once(named.name);
      frame(categories_[static_cast<std::size_t>(category_of(named.role))], 0, once);
    }
    if (event.op != kNone) frame(words_.op, 0, operators_[static_cast<std::size_t>(event.op)]);
    if (event.module != kNone)
      frame(words_.module, 0, modules_[static_cast<std::size_t>(event.module)]);
    frame(event.step == kNone ? words_.peakbench : words_.step, std::max(event.step, 0),
          phases_[static_cast<std::size_t>(event.phase)]);
    pickle_.end_list();
    pickle_.remember(stack);
  }

  void no_frames() {
    if (pickle_.again(nothing_)) return;
    pickle_.begin_list();
    pickle_.end_list();
    pickle_.remember(nothing_);
  }

  void frame(Word& filename, std::int64_t line, Word& name) {
    pickle_.item();
    pickle_.begin_dict();
    field(words_.filename, filename);
    field(words_.line, line);
    field(words_.name, name);
    pickle_.end_dict();
  }

  void field(Word& key, std::int64_t value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void field(Word& key, Word& value) {
    pickle_.text(key);
    pickle_.text(value);
  }

  static std::vector<Word> words(const std::vector<std::string>& texts) {
    return {texts.begin(), texts.end()};
  }
  template <class Enum, std::size_t count>
  static std::vector<Word> words_of() {
    std::vector<Word> words;
    for (std::size_t i = 0; i < count; ++i) words.emplace_back(to_string(static_cast<Enum>(i)));
    return words;
  }

  const Trace& trace_;
  const std::vector<Lifetime>& lifetimes_;
  std::vector<std::int32_t> owners_;
  PickleWriter pickle_;
  std::vector<std::vector<Segment>> synthesised_;  // by space
  std::unordered_map<Origin, PickleWriter::Shared, OriginHash> stacks_;
  PickleWriter::Shared nothing_;
  std::vector<Word> operators_ = words(trace_.operators), modules_ = words(trace_.modules),
                    categories_ = words_of<Category, kCategoryCount>(),
                    phases_ = words_of<Phase, kPhaseCount>();
  SnapshotWords words_;
};

}  // namespace

void write_memory_snapshot(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                           const std::string& path) {
  OutputFile file(path);
  Snapshot(trace, lifetimes, file).write();
  file.finish();
}

}  // namespace peakbench::trace
