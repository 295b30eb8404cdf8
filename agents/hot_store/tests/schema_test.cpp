#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/status.h"
#include "key_schema.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;

TEST(KeySchema, NeedsAboutHundredBitsForThePapersKey) {
  const KeySchema schema = KeySchema::parse("event:64,detector:16,run:16", "event");
  EXPECT_EQ(schema.encoded_bytes() * 8, 96u);
  EXPECT_EQ(schema.primary_bytes(), 8u);
}

TEST(KeySchema, PutsThePrimaryKeyFirstWhereverItWasNamed) {
  const KeySchema schema = KeySchema::parse("run:16,event:64", "event");
  const Bytes encoded = schema.encode({7, 0x0102030405060708});
  EXPECT_EQ(encoded, Bytes("\1\2\3\4\5\6\7\10\0\7", 10));
  EXPECT_EQ(schema.decode_primary(encoded), 0x0102030405060708u);
}

TEST(KeySchema, RefusesWhatIsNoSchemaAndNamesIt) {
  for (const char* text : {"", "event", "event:0", "event:65", "event:64x", ":3", "a b:3",
                           "event:64,event:64", "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1"}) {
    EXPECT_THROW(KeySchema::parse(text, "event"), Refusal) << text;
  }
  EXPECT_THROW(KeySchema::parse("event:64", "run"), Refusal);
}

TEST(KeySchema, RefusesAValueWithMoreBitsThanItsSubKey) {
  const KeySchema schema = KeySchema::parse("event:20,run:4", "event");
  EXPECT_NO_THROW(schema.encode({(1u << 20) - 1, 15}));
  EXPECT_THROW(schema.encode({1u << 20, 0}), Refusal);
  EXPECT_THROW(schema.encode({0, 16}), Refusal);
}

TEST(KeySchema, EncodedOrderIsTheOrderOfTheSubKeysAndDecodingGivesThemBack) {
  const KeySchema schema = KeySchema::parse("detector:9,event:33,run:17", "event");
  std::mt19937_64 random(1);
  const auto any = [&] { return Key{random() % 512, random() % (1ull << 33), random() % (1ull << 17)}; };
  for (int i = 0; i < 20'000; ++i) {
    const Key a = any(), b = any();
    const auto in_order = [](const Key& k) { return std::array{k[1], k[0], k[2]}; };
    EXPECT_EQ(schema.encode(a) < schema.encode(b), in_order(a) < in_order(b));
    EXPECT_EQ(schema.decode(schema.encode(a)), a);
  }
}

// On a small space every box can be compared with looking at every key.
TEST(KeySchema, NextInABoxIsTheFirstKeyThatLookingAtAllOfThemFinds) {
  const KeySchema schema = KeySchema::parse("event:2,detector:2,run:1", "event");
  std::vector<Key> all;
  for (std::uint64_t e = 0; e < 4; ++e)
    for (std::uint64_t d = 0; d < 4; ++d)
      for (std::uint64_t r = 0; r < 2; ++r) all.push_back({e, d, r});
  for (const Key& lower : all) {
    for (const Key& upper : all) {
      const Box box{lower, upper};
      for (const Key& from : all) {
        const auto wanted = std::find_if(all.begin(), all.end(), [&](const Key& key) {
          return schema.encode(key) >= schema.encode(from) && schema.contains(box, key);
        });
        const auto found = schema.next_in(box, from);
        ASSERT_EQ(found.has_value(), wanted != all.end());
        if (found) {
          ASSERT_EQ(*found, *wanted);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hotstore
