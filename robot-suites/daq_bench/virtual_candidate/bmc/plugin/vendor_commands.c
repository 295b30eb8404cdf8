// Plug-in of OpenIPMI's ipmi_sim: vendors' raw fan commands and DCMI power reading.
//
// Promises: each vendor command is logged as one JSON line, with its completion code, before it is answered; the fans'
// sensor files follow mode and duty at once; a fan with a file in <directory>/stopped-fans stays at 0 RPM whatever it is told.
// Touches nothing but <directory>, which is the option in ipmi_sim's `loadlib` line. Reads there `plugin.conf`, written by
// ipmi_config.py, and keeps mode and duties in `fan-control` ("<mode> <duty of zone 0> <duty of zone 1>"), which Redfish shares.
//
// Sources of the commands: Supermicro 0x30 0x45 and 0x30 0x70 0x66, Dell 0x30 0x30 0x01/0x02 are undocumented by the vendors and
// known from their users' tools; DCMI: DCMI 1.5 specification, table 6-16 "Get Power Reading".
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>

enum { ZONES = 2, FANS_MAX = 16, MODES_MAX = 16, NAME_MAX_LENGTH = 32, PATH_LENGTH = 1024 };
enum { OK = 0x00, INVALID_COMMAND = 0xc1, WRONG_LENGTH = 0xc7, INVALID_FIELD = 0xcc, UNSPECIFIED = 0xff };
enum { NETFN_OEM = 0x30, DCMI = 0xdc, DCMI_GET_POWER_READING = 0x02 };
enum { SUPERMICRO_MODE = 0x45, SUPERMICRO_DUTY = 0x70, DELL_FAN = 0x30 };

typedef struct {
  unsigned code;
  unsigned duty[ZONES];
} fan_mode_t;

typedef struct {
  char name[NAME_MAX_LENGTH];
  unsigned zone;
} fan_t;

static char directory[PATH_LENGTH / 2];
static char vendor[NAME_MAX_LENGTH];
static char power_sensor[NAME_MAX_LENGTH];
static unsigned rpm_per_duty;
static unsigned full_mode, automatic_mode;
static fan_t fans[FANS_MAX];
static unsigned fan_count;
static fan_mode_t modes[MODES_MAX];
static unsigned mode_count;

// The BMC holds the fans at this; the file `fan-control`.
typedef struct {
  unsigned mode;
  unsigned duty[ZONES];
} control_t;

static FILE* open_in(const char* how, const char* format, ...) {
  char path[PATH_LENGTH];
  int prefix = snprintf(path, sizeof path, "%s/", directory);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(path + prefix, sizeof path - (size_t)prefix, format, arguments);
  va_end(arguments);
  return fopen(path, how);
}

static const fan_mode_t* mode_of(unsigned code) {
  for (unsigned i = 0; i < mode_count; i++)
    if (modes[i].code == code) return &modes[i];
  return NULL;
}

static int read_control(control_t* control) {
  FILE* file = open_in("r", "fan-control");
  if (!file) return 0;
  int count = fscanf(file, "%u %u %u", &control->mode, &control->duty[0], &control->duty[1]);
  fclose(file);
  return count == 1 + ZONES;
}

// Written beside and renamed: a reader sees the old content or the new one, never half of it.
static int replace(const char* name, const char* text) {
  char path[PATH_LENGTH], fresh[PATH_LENGTH];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  snprintf(fresh, sizeof fresh, "%s/%s.new", directory, name);
  FILE* file = fopen(fresh, "w");
  if (!file) return 0;
  int written = fputs(text, file) >= 0;
  return fclose(file) == 0 && written && rename(fresh, path) == 0;
}

static int is_stopped(const char* fan) {
  char path[PATH_LENGTH];
  struct stat found;
  snprintf(path, sizeof path, "%s/stopped-fans/%s", directory, fan);
  return stat(path, &found) == 0;
}

static int apply(const control_t* control) {
  char name[2 * NAME_MAX_LENGTH], text[64];
  snprintf(text, sizeof text, "%u %u %u\n", control->mode, control->duty[0], control->duty[1]);
  int ok = replace("fan-control", text);
  for (unsigned i = 0; i < fan_count; i++) {
    unsigned rpm = is_stopped(fans[i].name) ? 0 : control->duty[fans[i].zone] * rpm_per_duty;
    snprintf(name, sizeof name, "sensors/%s", fans[i].name);
    snprintf(text, sizeof text, "%u\n", rpm);
    ok = replace(name, text) && ok;
  }
  return ok;
}

static void log_command(const msg_t* message, unsigned char completion) {
  char line[2048], stamp[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  int used = snprintf(line, sizeof line,
                      "{\"time\": \"%s\", \"via\": \"ipmi\", \"channel\": %u, \"netfn\": \"0x%02x\", \"command\": \"0x%02x\", \"data\": \"",
                      stamp, message->channel, message->netfn, message->cmd);
  for (unsigned i = 0; i < message->len && used < (int)sizeof line - 64; i++)
    used += snprintf(line + used, sizeof line - (size_t)used, "%s0x%02x", i ? " " : "", message->data[i]);
  snprintf(line + used, sizeof line - (size_t)used, "\", \"completion\": \"0x%02x\"}\n", completion);
  FILE* file = open_in("a", "commands.log");
  if (!file) {
    fprintf(stderr, "vendor_commands: cannot write %s/commands.log\n", directory);
    return;
  }
  fputs(line, file);
  fclose(file);
}

// Supermicro 0x30 0x45: `00` reads the mode, `01 <mode>` sets it.
static unsigned char supermicro_mode(const msg_t* message, control_t* control, unsigned char* answer, unsigned* length) {
  if (message->len < 1) return WRONG_LENGTH;
  if (message->data[0] == 0) {
    answer[(*length)++] = (unsigned char)control->mode;
    return OK;
  }
  if (message->data[0] != 1) return INVALID_FIELD;
  if (message->len < 2) return WRONG_LENGTH;
  const fan_mode_t* wanted = mode_of(message->data[1]);
  if (!wanted) return INVALID_FIELD;
  control->mode = wanted->code;
  memcpy(control->duty, wanted->duty, sizeof control->duty);
  return apply(control) ? OK : UNSPECIFIED;
}

// Supermicro 0x30 0x70: `66 00 <zone>` reads a zone's duty, `66 01 <zone> <percent>` sets it. In any mode but full the BMC's
// own control takes the fans back within seconds, so that the command succeeds without lasting effect: here, without any.
static unsigned char supermicro_duty(const msg_t* message, control_t* control, unsigned char* answer, unsigned* length) {
  if (message->len < 3) return WRONG_LENGTH;
  if (message->data[0] != 0x66 || message->data[1] > 1 || message->data[2] >= ZONES) return INVALID_FIELD;
  unsigned zone = message->data[2];
  if (message->data[1] == 0) {
    answer[(*length)++] = (unsigned char)control->duty[zone];
    return OK;
  }
  if (message->len < 4) return WRONG_LENGTH;
  if (message->data[3] > 100) return INVALID_FIELD;
  if (control->mode != full_mode) return OK;
  control->duty[zone] = message->data[3];
  return apply(control) ? OK : UNSPECIFIED;
}

// Dell 0x30 0x30: `01 00` takes the fans from automatic control, `01 01` gives them back, `02 ff <percent>` sets all of them.
static unsigned char dell_fan(const msg_t* message, control_t* control) {
  if (message->len < 2) return WRONG_LENGTH;
  if (message->data[0] == 0x01 && message->data[1] <= 1) {
    control->mode = message->data[1] ? automatic_mode : full_mode;
    if (message->data[1]) memcpy(control->duty, mode_of(automatic_mode)->duty, sizeof control->duty);
    return apply(control) ? OK : UNSPECIFIED;
  }
  if (message->data[0] != 0x02 || message->data[1] != 0xff) return INVALID_FIELD;
  if (message->len < 3) return WRONG_LENGTH;
  if (message->data[2] > 100) return INVALID_FIELD;
  if (control->mode != full_mode) return OK;
  for (unsigned zone = 0; zone < ZONES; zone++) control->duty[zone] = message->data[2];
  return apply(control) ? OK : UNSPECIFIED;
}

static void vendor_command(lmc_data_t* mc, msg_t* message, unsigned char* answer, unsigned* length, void* data) {
  (void)mc;
  (void)data;
  control_t control;
  *length = 1;
  if (strcmp(vendor, message->cmd == DELL_FAN ? "dell" : "supermicro") != 0)
    answer[0] = INVALID_COMMAND;
  else if (!read_control(&control))
    answer[0] = UNSPECIFIED;
  else if (message->cmd == SUPERMICRO_MODE)
    answer[0] = supermicro_mode(message, &control, answer, length);
  else if (message->cmd == SUPERMICRO_DUTY)
    answer[0] = supermicro_duty(message, &control, answer, length);
  else
    answer[0] = dell_fan(message, &control);
  log_command(message, answer[0]);
}

static void put_number(unsigned char* target, unsigned long value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) target[i] = (unsigned char)(value >> (8 * i));
}

// DCMI group extension: the answer's second byte repeats the group.
static void dcmi(lmc_data_t* mc, msg_t* message, unsigned char* answer, unsigned* length, void* data) {
  (void)mc;
  (void)data;
  enum { CURRENT = 2, MINIMUM = 4, MAXIMUM = 6, AVERAGE = 8, STAMP = 10, PERIOD_MS = 14, STATE = 18, LENGTH = 19 };
  unsigned watts = 0;
  answer[1] = DCMI;
  *length = 2;
  if (message->cmd != DCMI_GET_POWER_READING) {
    answer[0] = INVALID_COMMAND;
    return;
  }
  FILE* file = open_in("r", "sensors/%s", power_sensor);
  int count = file ? fscanf(file, "%u", &watts) : 0;
  if (file) fclose(file);
  if (count != 1) {
    answer[0] = UNSPECIFIED;
    return;
  }
  memset(answer + 2, 0, LENGTH - 2);
  answer[0] = OK;
  for (unsigned at = CURRENT; at <= AVERAGE; at += 2) put_number(answer + at, watts, 2);
  put_number(answer + STAMP, (unsigned long)time(NULL), 4);
  put_number(answer + PERIOD_MS, 1000, 4);
  answer[STATE] = 0x40;  // measurement active
  *length = LENGTH;
}

static int read_configuration(void) {
  char key[NAME_MAX_LENGTH];
  FILE* file = open_in("r", "plugin.conf");
  if (!file) return 0;
  int ok = 1;
  while (ok && fscanf(file, "%31s", key) == 1) {
    if (!strcmp(key, "vendor"))
      ok = fscanf(file, "%31s", vendor) == 1;
    else if (!strcmp(key, "power_sensor"))
      ok = fscanf(file, "%31s", power_sensor) == 1;
    else if (!strcmp(key, "rpm_per_duty"))
      ok = fscanf(file, "%u", &rpm_per_duty) == 1;
    else if (!strcmp(key, "full_mode"))
      ok = fscanf(file, "%u", &full_mode) == 1;
    else if (!strcmp(key, "automatic_mode"))
      ok = fscanf(file, "%u", &automatic_mode) == 1;
    else if (!strcmp(key, "fan") && fan_count < FANS_MAX) {
      fan_t* fan = &fans[fan_count++];
      ok = fscanf(file, "%31s %u", fan->name, &fan->zone) == 2 && fan->zone < ZONES;
    } else if (!strcmp(key, "mode") && mode_count < MODES_MAX) {
      fan_mode_t* mode = &modes[mode_count++];
      ok = fscanf(file, "%u %u %u", &mode->code, &mode->duty[0], &mode->duty[1]) == 1 + ZONES;
    } else
      ok = 0;
  }
  fclose(file);
  return ok && vendor[0] && power_sensor[0] && fan_count && mode_of(full_mode) && mode_of(automatic_mode);
}

int ipmi_sim_module_print_version(sys_data_t* sys, const char* options) {
  (void)sys;
  (void)options;
  printf("vendor_commands 1\n");
  return 0;
}

// A non-zero answer makes ipmi_sim end: a BMC without its vendor's commands must not come up.
int ipmi_sim_module_init(sys_data_t* sys, const char* options) {
  (void)sys;
  snprintf(directory, sizeof directory, "%s", options ? options : ".");
  if (!read_configuration()) {
    fprintf(stderr, "vendor_commands: %s/plugin.conf is missing or wrong\n", directory);
    return -1;
  }
  // All of them whatever the vendor is, so that a command meant for another vendor's BMC is refused and in the log.
  int failed = ipmi_emu_register_cmd_handler(NETFN_OEM, SUPERMICRO_MODE, vendor_command, NULL);
  failed |= ipmi_emu_register_cmd_handler(NETFN_OEM, SUPERMICRO_DUTY, vendor_command, NULL);
  failed |= ipmi_emu_register_cmd_handler(NETFN_OEM, DELL_FAN, vendor_command, NULL);
  ipmi_emu_register_group_extension_handler(DCMI, dcmi, NULL);
  return failed;
}
