#include "report/line_protocol.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace daqwriter {
namespace {

TEST(LineProtocol, WritesTagsFieldsAndTime) {
  EXPECT_EQ(format_line({{"command", "minidaq"}, {"run", "r1"}},
                        {{"a_bytes", std::uint64_t{7}}, {"b_s", 0.5}}, 123),
            "daqwriter,command=minidaq,run=r1 a_bytes=7i,b_s=0.5 123\n");
}

TEST(LineProtocol, EscapesWhatSeparates) {
  EXPECT_EQ(format_line({{"a b", "x,y=z"}}, {{"n", std::uint64_t{1}}}, 1),
            "daqwriter,a\\ b=x\\,y\\=z n=1i 1\n");
}

TEST(LineProtocol, RefusesTagsThatWouldBreakARecord) {
  for (const char* tag : {"novalue", "=x", "k=", "k=a\nb", "k=a\\", "k\\=a", "phase=x", "command=x"}) {
    EXPECT_THROW(parse_tags({tag}), Refusal) << tag;
  }
  EXPECT_THROW(parse_tags({"k=1", "k=2"}), Refusal);
  EXPECT_EQ(parse_tags({"k=a=b"}), (Tags{{"k", "a=b"}}));
}

}  // namespace
}  // namespace daqwriter
