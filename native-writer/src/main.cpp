// Promise: the command line: names, units, defaults, exit codes. No work is done here.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>

#include "aio_engine.h"
#include "minidaq.h"
#include "null_engine.h"
#include "report_json.h"
#include "status.h"
#include "units.h"
#include "verify_command.h"

namespace daqwriter {
namespace {

constexpr const char* kFooter =
    "Sizes: an integer with B, KiB, MiB, GiB, TiB (powers of 1024) or MB, GB, TB (powers of 1000); without a "
    "unit: bytes.\n"
    "Exit codes: 0 complete or intact (losses are counted in the JSON), 1 failed (I/O or system error), 2 "
    "refused or\n"
    "bad usage (nothing was written), 3 verify found damage, 130 interrupted by SIGINT or SIGTERM (record "
    "closed).";

// Written by the signal handler: lock-free, so that it is safe there.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  stop_signal.store(number, std::memory_order_relaxed);
}

// The first signal asks for an orderly end, a second one ends the process at once (SA_RESETHAND).
void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Options as text where our own parsers give the better message.
struct Texts {
  std::string ring_size = "64MiB";
  std::string block_size = "8MiB";
  std::string max_buffer;
  std::string checksum = "crc32";
  std::string record_id;
  std::string sink = "target";
  std::string engine = "libaio";
  std::string preallocate = "full";
  std::vector<std::string> tags;
  bool dry_run = false;
};

void add_minidaq(CLI::App& app, MiniDaqOptions& o, Texts& t) {
  app.add_option("--target", o.target, "New file or block device to record on");
  app.add_option("--sink", t.sink, "target, or null: no I/O, to calibrate the program itself")
      ->check(CLI::IsMember({"target", "null"}))
      ->capture_default_str();
  app.add_option("--duration", o.duration_s, "Length of the record, seconds")->required();
  app.add_option("--links", o.links, "Number of links")->capture_default_str();
  app.add_option("--superchunk-bytes", o.superchunk_bytes,
                 "Size of a superchunk, 64 B header included, bytes")
      ->capture_default_str();
  app.add_option("--superchunk-rate", o.superchunk_rate_hz, "Superchunks per second and link, Hz")
      ->capture_default_str();
  app.add_option("--scale", o.scale, "Factor on the rate")->capture_default_str();
  app.add_option("--ring-size", t.ring_size, "Transient buffer of each link, size")->capture_default_str();
  app.add_option("--block-size", t.block_size, "Bytes per write, size; a multiple of 4KiB")
      ->capture_default_str();
  app.add_option("--io-depth", o.io_depth, "Most writes in flight")->capture_default_str();
  app.add_option("--engine", t.engine, "Asynchronous I/O interface")
      ->check(CLI::IsMember({"libaio"}))
      ->capture_default_str();
  app.add_option("--checksum", t.checksum, "crc32, adler32 or off, per superchunk")->capture_default_str();
  app.add_option("--preallocate", t.preallocate,
                 "full: fallocate the file before the record; none: let it grow")
      ->check(CLI::IsMember({"full", "none"}))
      ->capture_default_str();
  app.add_option("--max-buffer", t.max_buffer, "Refuse when rings and block buffers exceed this size");
  app.add_option("--seed", o.seed, "Seed of the payload")->capture_default_str();
  app.add_option("--record-id", t.record_id, "32 hexadecimal digits; random when not given");
  app.add_option("--writer-cpu", o.writer_cpu, "CPU of the writer thread; default: near the drive");
  app.add_option("--source-cpu", o.source_cpu,
                 "CPU of the source thread; default: near the drive, another one");
  app.add_option("--allow-serial", o.consent.allow_serial,
                 "Serial or WWN of the raw drive that may be written");
  app.add_option("--destroy", o.consent.destroy_serial,
                 "The same serial again: its old signature may be destroyed");
  app.add_flag("--allow-memory-target", o.consent.memory_target,
               "Tests only: accept tmpfs, ramfs, overlay, zram");
  app.add_flag("--dry-run", t.dry_run, "Check everything, write nothing, print the plan");
}

void add_reporting(CLI::App& app, double& interval_s, std::string& json, std::string& lines, Texts& t) {
  app.add_option("--interval", interval_s,
                 "Time between two line-protocol records and series points, seconds")
      ->capture_default_str();
  app.add_option("--json", json, "Result file; - is standard output");
  app.add_option("--line-protocol", lines, "File to append line-protocol records to");
  app.add_option("--tag", t.tags, "key=value for the line-protocol records; repeatable")
      ->allow_extra_args(false);
}

void resolve(const Texts& t, MiniDaqOptions& o) {
  o.ring_bytes = parse_size(t.ring_size);
  o.block_bytes = parse_size(t.block_size);
  if (!t.max_buffer.empty()) o.max_buffer_bytes = parse_size(t.max_buffer);
  o.checksum = parse_checksum_kind(t.checksum);
  if (!t.record_id.empty()) o.record_id = parse_record_id(t.record_id);
  o.null_sink = t.sink == "null";
  if (o.null_sink && !o.target.empty()) throw Refusal("--sink null writes nowhere: leave --target away");
  o.preallocate = t.preallocate == "full";
  o.tags = parse_tags(t.tags);
}

ExitCode minidaq(MiniDaqOptions& o, const Texts& t) {
  resolve(t, o);
  const MiniDaqPlan plan = plan_minidaq(o);
  if (t.dry_run) {
    std::cerr << minidaq_plan_text(o, plan);
    return ExitCode::complete;
  }
  const EngineFactory engine = [&](unsigned depth) -> std::unique_ptr<IoEngine> {
    if (o.null_sink) return std::make_unique<NullEngine>();
    return std::make_unique<AioEngine>(depth);
  };
  install_signal_handlers();
  const MiniDaqResult result = run_minidaq(o, plan, engine, stop_signal);
  write_json(o.json_path, minidaq_json(o, plan, result));
  std::cerr << minidaq_summary(o, result);
  if (result.status == RunStatus::failed) return ExitCode::failed;
  return result.status == RunStatus::interrupted ? ExitCode::interrupted : ExitCode::complete;
}

ExitCode verify(VerifyOptions& o, const Texts& t) {
  o.tags = parse_tags(t.tags);
  install_signal_handlers();
  return run_verify(o, stop_signal);
}

int run(int argc, char** argv) {
  CLI::App app("daqwriter: writes and verifies data-acquisition records, to qualify storage");
  app.set_version_flag("--version", std::string("daqwriter ") + DAQWRITER_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  MiniDaqOptions record;
  VerifyOptions check;
  Texts texts;
  CLI::App* minidaq_app =
      app.add_subcommand("minidaq", "Record paced links continuously, as in a supernova burst");
  add_minidaq(*minidaq_app, record, texts);
  add_reporting(*minidaq_app, record.interval_s, record.json_path, record.line_protocol_path, texts);
  minidaq_app->footer(kFooter);
  CLI::App* verify_app = app.add_subcommand(
      "verify", "Read a record back and prove every superchunk present once, in order, intact");
  verify_app->add_option("--target", check.target, "File or block device that holds the record")->required();
  add_reporting(*verify_app, check.interval_s, check.json_path, check.line_protocol_path, texts);
  verify_app->footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::refused);
  }
  return static_cast<int>(minidaq_app->parsed() ? minidaq(record, texts) : verify(check, texts));
}

}  // namespace
}  // namespace daqwriter

int main(int argc, char** argv) {
  try {
    return daqwriter::run(argc, argv);
  } catch (const daqwriter::Refusal& refusal) {
    std::cerr << "daqwriter: " << refusal.what() << "\n";
    return static_cast<int>(daqwriter::ExitCode::refused);
  } catch (const std::exception& failure) {
    std::cerr << "daqwriter: " << failure.what() << "\n";
    return static_cast<int>(daqwriter::ExitCode::failed);
  }
}
