// Every numeric option of every command: what is absurd is refused at once, with the option's name. First by
// the parsers alone, over random command lines; then by the real program.
#include <chrono>
#include <random>

#include "cli/cli.h"
#include "support.h"

namespace daqwriter {
namespace {

using testing::run_daqwriter;
using testing::TempDir;

const std::vector<std::string>& hostile_values() {
  static const std::vector<std::string> values = {"",
                                                  "0",
                                                  "-0",
                                                  "-1",
                                                  "-1e300",
                                                  "1e-300",
                                                  "1e-16",
                                                  "5e-324",
                                                  "1e300",
                                                  "1e999",
                                                  "inf",
                                                  "-inf",
                                                  "nan",
                                                  "-nan",
                                                  "0x10",
                                                  "1e",
                                                  "--",
                                                  "1,2",
                                                  ",",
                                                  "1,,2",
                                                  "8M",
                                                  "1 MiB",
                                                  "1KiB2",
                                                  "18446744073709551615",
                                                  "9999999999999999999999",
                                                  "-18446744073709551615",
                                                  "4294967296",
                                                  "2147483648",
                                                  "16777216TiB",
                                                  "18014398509481984KiB",
                                                  "0.5",
                                                  "1",
                                                  "2",
                                                  "\xff\xfe",
                                                  "%s%n",
                                                  std::string(5000, '9')};
  return values;
}

struct Parsed {
  CLI::App app{"test"};
  std::vector<ParsedCommand> commands;
  Parsed() { app.require_subcommand(1), commands = add_commands(app); }
};

// "" when it is taken, else the message.
std::string parse(std::vector<std::string> arguments) {
  Parsed parsed;
  std::reverse(arguments.begin(), arguments.end());
  try {
    parsed.app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return std::string("refused: ") + error.what();
  } catch (const Refusal& refusal) {
    return std::string("refused: ") + refusal.what();
  }
  return "";
}

struct OptionOf {
  std::string command;
  std::string option;
};

std::vector<OptionOf> all_options() {
  Parsed parsed;
  std::vector<OptionOf> all;
  for (const ParsedCommand& command : parsed.commands) {
    for (const CLI::Option* option : command.app->get_options()) {
      if (!option->get_lnames().empty())
        all.push_back({command.app->get_name(), "--" + option->get_lnames().front()});
    }
  }
  return all;
}

TEST(OptionBounds, RefuseWithNameValueAndBounds) {
  EXPECT_EQ(parse({"minidaq", "--scale", "1e-16"}), "refused: --scale 1e-16: give 1e-06 to 100 as a factor");
  EXPECT_EQ(parse({"minidaq", "--scale", "nan"}), "refused: --scale nan: give 1e-06 to 100 as a factor");
  EXPECT_EQ(parse({"write", "--interval", "inf"}), "refused: --interval inf: give 0.01 to 3600 seconds");
  EXPECT_EQ(parse({"write", "--threads", "-1"}), "refused: --threads -1: give 1 to 64");
  EXPECT_EQ(parse({"minidaq", "--applications", "65"}), "refused: --applications 65: give 1 to 64");
  EXPECT_EQ(parse({"minidaq", "--writers", "0"}),
            "refused: --writers 0: give 1 to 126 writers of an application");
  EXPECT_EQ(parse({"write", "--bytes", "18446744073709551615"}),
            "refused: --bytes 18446744073709551615: give 1B to 1048576TiB");
  EXPECT_EQ(parse({"minidaq", "--duration", "1", "--scale", "100"}), "");
  EXPECT_EQ(parse({"write", "--bytes", "8MiB"}), "");
  std::vector<std::string> many = {"write"};
  for (int i = 0; i < 65; ++i) many.insert(many.end(), {"--target", "t" + std::to_string(i)});
  EXPECT_EQ(parse(many), "refused: --target 65: give 1 to 64 targets");
}

// Random command lines out of all options and hostile values; the seed makes them the same at every run.
TEST(OptionBounds, AnyCommandLineIsTakenOrRefused) {
  const std::vector<OptionOf> options = all_options();
  ASSERT_GT(options.size(), 60u);
  std::mt19937 random(20);
  const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
  const auto since = std::chrono::steady_clock::now();
  std::size_t refused = 0;
  constexpr std::size_t kLines = 400;
  for (std::size_t line = 0; line < kLines; ++line) {
    std::vector<std::string> arguments = {pick(options).command};
    for (std::size_t i = random() % 6; i > 0; --i) {
      arguments.push_back(pick(options).option);
      if (random() % 8 > 0) arguments.push_back(pick(hostile_values()));
      if (random() % 8 == 0) arguments.back() += "=" + pick(hostile_values());
    }
    refused += parse(arguments).empty() ? 0 : 1;  // any other exception fails the test
  }
  EXPECT_GT(refused, kLines / 2);
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(40));
}

// Values that no numeric option may take.
TEST(OptionBounds, NoNumericOptionTakesWhatIsNoNumber) {
  for (const OptionOf& each : all_options()) {
    Parsed parsed;
    const CLI::Option* option = parsed.app.get_subcommand(each.command)->get_option(each.option);
    const std::string type = option->get_type_name();
    if (type != "NUMBER" && type != "SIZE" && type != "UINT" && type != "FLOAT" && type != "LIST") continue;
    for (const std::string value : {"nan", "inf", "-1", "1e999", "99999999999999999999999", "x"})
      EXPECT_NE(parse({each.command, each.option, value}), "")
          << each.command << " " << each.option << " " << value;
  }
}

// The whole program: refused at once, by name, with nothing left behind.
TEST(OptionBounds, TheProgramRefusesAtOnce) {
  const TempDir directory;
  const std::string target = directory.path("target");
  const std::vector<std::vector<std::string>> lines = {
      {"minidaq", "--scale", "1e-16", "--duration", "1"},
      {"minidaq", "--superchunk-rate", "1e-300", "--duration", "1"},
      {"minidaq", "--duration", "inf"},
      {"minidaq", "--interval", "inf", "--duration", "1"},
      {"minidaq", "--ring-size", "18446744073709551615", "--duration", "1"},
      {"write", "--interval", "inf", "--bytes", "1MiB"},
      {"write", "--bytes", "18446744073709551615"},
      {"write", "--span", "18446744073709551615", "--bytes", "1MiB"},
      {"write", "--stall-limit", "nan", "--bytes", "1MiB"},
      {"streams", "--bytes", "18446744073709551615"},
      {"streams", "--rate", "18446744073709551615", "--duration", "1"},
      {"streams", "--shares", "nan,1", "--bytes", "1MiB"},
      {"streams", "--event-spread", "nan", "--bytes", "1MiB"},
      {"streams", "--event-size", "18446744073709551615", "--bytes", "1MiB"},
      {"verify", "--offset", "18446744073709551615"},
      {"verify", "--interval", "inf"},
      {"verify", "--stall-limit", "0"},
      {"checksum", "--time", "inf"},
      {"checksum", "--sizes", "18446744073709551615"},
  };
  for (std::vector<std::string> line : lines) {
    const std::string option = line[1];
    if (line[0] != "checksum") line.insert(line.end(), {"--target", target});
    const auto result = run_daqwriter(line);
    EXPECT_EQ(result.exit_code, 2) << option << ": " << result.error_text;
    EXPECT_NE(result.error_text.find(option), std::string::npos) << result.error_text;
    EXPECT_FALSE(std::filesystem::exists(target));
  }
}

}  // namespace
}  // namespace daqwriter
