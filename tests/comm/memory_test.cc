// A pool of memory: pieces are zeroed and apart, and a piece that is freed returns its memory to the system.
#include "comm/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "comm/wire.h"

namespace weft::comm::memory_test {
namespace {

bool is_zeroed(const Memory& memory) {
  return std::all_of(memory.data(), memory.data() + memory.bytes(), [](std::byte b) { return b == std::byte{0}; });
}

std::size_t resident_pages(const std::byte* begin, std::size_t bytes) {
  std::vector<unsigned char> pages(bytes / kPage);
  EXPECT_EQ(mincore(const_cast<std::byte*>(begin), bytes, pages.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(MemoryPool, GivesZeroedPiecesThatLieApart) {
  const std::unique_ptr<Wire> wire = make_threads_wire(1);
  MemoryPool pool(*wire, ProcessorId(0));
  std::vector<Memory> pieces;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, kPage * 16, kPage * 16 + 4, kLargePage * 3 + 8,
                                  std::size_t{400} << 20, kPage * 20}) {
    pieces.push_back(pool.allocate(bytes));
    const Memory& piece = pieces.back();
    EXPECT_EQ(piece.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data()) % 64, 0u);
    if (bytes > kLargePage * 4) continue;  // address space alone
    EXPECT_TRUE(is_zeroed(piece));
    std::fill_n(piece.data(), bytes, static_cast<std::byte>(pieces.size()));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Memory& piece = pieces[i];
    if (piece.bytes() > kLargePage * 4) continue;
    EXPECT_TRUE(std::all_of(piece.data(), piece.data() + piece.bytes(), [&](std::byte b) {
      return b == static_cast<std::byte>(i + 1);
    })) << i;
  }
}

TEST(MemoryPool, PutsPiecesSideBySide) {
  const std::unique_ptr<Wire> wire = make_threads_wire(1);
  MemoryPool pool(*wire, ProcessorId(0));
  const Memory first = pool.allocate(kPage * 20), second = pool.allocate(kPage * 30);
  EXPECT_EQ(second.data(), first.data() + first.bytes());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()) % kLargePage, 0u);
}

TEST(MemoryPool, ReturnsFreedMemory) {
  const std::unique_ptr<Wire> wire = make_threads_wire(1);
  MemoryPool pool(*wire, ProcessorId(0));
  const Memory stays = pool.allocate(kPage * 16);
  std::optional<Memory> goes = pool.allocate(kLargePage * 2);
  std::fill_n(goes->data(), goes->bytes(), std::byte{1});
  std::fill_n(stays.data(), stays.bytes(), std::byte{1});
  const std::byte* was = goes->data();
  EXPECT_EQ(resident_pages(was, kLargePage * 2), kLargePage * 2 / kPage);
  goes.reset();
  EXPECT_EQ(resident_pages(was, kLargePage * 2), 0u);
  EXPECT_EQ(stays.data()[kPage], std::byte{1});
}

}  // namespace
}  // namespace weft::comm::memory_test
