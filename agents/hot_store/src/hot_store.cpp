#include "hot_store.h"

#include <cmath>
#include <random>

#include "base/status.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;

constexpr std::size_t kNameBytes = 8;
constexpr const char* kSchemaName = "schema";

std::uint64_t random_name() {
  thread_local std::mt19937_64 engine{(std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()};
  return engine();
}

EngineKey split(const KeySchema& schema, const Bytes& encoded) {
  const View whole(encoded);
  return {whole.substr(0, schema.primary_bytes()), whole.substr(schema.primary_bytes())};
}

char level_of(View record) {
  if (record.empty()) throw Damage("the store holds a record without a head");
  return record.front();
}

// The value's name in a record of level 2: all that is behind the level.
View name_part(View record) {
  return record.substr(1, kNameBytes);
}

std::int64_t to_ms(double lease_s) {
  if (!(lease_s > 0)) throw Refusal("a lease of " + std::to_string(lease_s) + " s: give more than 0");
  return std::max<std::int64_t>(1, std::llround(lease_s * 1e3));
}

}  // namespace

HotStore::HotStore(KeySchema schema, std::unique_ptr<Engine> engine, std::unique_ptr<ValueStore> second)
    : schema_(std::move(schema)), engine_(std::move(engine)), second_(std::move(second)) {
  const Bytes kept = engine_->remember(kSchemaName, schema_.text());
  if (kept != schema_.text())
    throw Refusal(engine_->description() + " holds keys of '" + kept + "', not '" + schema_.text() +
                  "': open it with its own --key and --primary, or use an empty store");
}

ValueStore& HotStore::second() {
  if (!second_) throw Refusal("level 2: this store has none (give it a place of its own)");
  return *second_;
}

Bytes HotStore::new_name(View encoded) const {
  Bytes name(encoded);
  const std::uint64_t number = random_name();
  for (std::size_t i = 0; i < kNameBytes; ++i) name.push_back(static_cast<char>(number >> (8 * i)));
  return name;
}

void HotStore::erase_value_of(View encoded, View record) {
  if (level_of(record) != static_cast<char>(Level::large)) return;
  second().erase(Bytes(encoded) + Bytes(name_part(record)));
}

Answer HotStore::put(const Key& key, View value, Level level) {
  const Bytes encoded = schema_.encode(key);
  if (level == Level::fast) return engine_->put(split(schema_, encoded), "1", value);
  const Bytes name = new_name(encoded);
  const Answer stored = second().put(name, value);
  if (stored != Answer::ok) return stored;
  const Bytes head = "2" + name.substr(encoded.size());
  const Answer answer = engine_->put(split(schema_, encoded), head, {});
  if (answer != Answer::ok && answer != Answer::unconfirmed) second().erase(name);
  return answer;
}

Answer HotStore::read(const Bytes& encoded, char& level, Bytes& rest, Bytes& value) {
  for (;;) {
    const Answer answer = engine_->get(split(schema_, encoded), level, rest);
    if (answer != Answer::ok || level == static_cast<char>(Level::fast)) return answer;
    if (second().get(encoded + rest, value) == Answer::ok) return Answer::ok;
    // Somebody else has replaced or removed it between the two reads: the
    // record is read again.
    Bytes now;
    if (engine_->get(split(schema_, encoded), level, now) == Answer::ok && now == rest)
      throw Damage("a value of level 2 is missing although its key is there");
  }
}

Answer HotStore::get(const Key& key, Bytes& value, Level* level) {
  Bytes name;
  char found = 0;
  const Bytes encoded = schema_.encode(key);
  if (!second_) {
    const Answer answer = engine_->get(split(schema_, encoded), found, value);
    if (answer != Answer::ok) return answer;
    if (found == static_cast<char>(Level::large)) second();  // refuses: opened without its second level
  } else {
    const Answer answer = read(encoded, found, name, value);
    if (answer != Answer::ok) return answer;
    if (found == static_cast<char>(Level::fast)) value.swap(name);
  }
  if (level) *level = static_cast<Level>(found);
  return Answer::ok;
}

Answer HotStore::update(const Key& key, const Change& change, Token token) {
  const Bytes encoded = schema_.encode(key);
  for (;;) {
    char level = 0;
    Bytes rest, value;
    const Answer found = read(encoded, level, rest, value);
    if (found != Answer::ok) return found;
    const Bytes expected = level + rest;
    const View next =
        change.value ? *change.value : View(level == static_cast<char>(Level::fast) ? rest : value);
    const char wanted = change.level ? static_cast<char>(*change.level) : level;
    const Answer answer = replace(encoded, wanted, next, token, change.value ? nullptr : &expected);
    if (answer != Answer::changed) return answer;
  }
}

Answer HotStore::replace(const Bytes& encoded, char level, View value, Token token, const Bytes* expected) {
  Bytes before;
  Answer answer = Answer::ok;
  if (level == static_cast<char>(Level::fast)) {
    answer = engine_->update(split(schema_, encoded), "1", value, token, expected, before);
  } else {
    const Bytes name = new_name(encoded);
    answer = second().put(name, value);
    if (answer != Answer::ok) return answer;
    const Bytes head = "2" + name.substr(encoded.size());
    answer = engine_->update(split(schema_, encoded), head, {}, token, expected, before);
    if (answer != Answer::ok && answer != Answer::unconfirmed) second().erase(name);
  }
  if (answer == Answer::ok) erase_value_of(encoded, before);
  return answer;
}

Answer HotStore::remove(const Key& key, Token token) {
  const Bytes encoded = schema_.encode(key);
  if (!second_) return engine_->remove(split(schema_, encoded), token, nullptr);
  Bytes before;
  const Answer answer = engine_->remove(split(schema_, encoded), token, &before);
  if (answer == Answer::ok) erase_value_of(encoded, before);
  return answer;
}

std::optional<Item> HotStore::item_of(const Bytes& encoded, const Bytes& record) {
  Item item{schema_.decode(encoded), {}, Level::fast};
  if (level_of(record) == static_cast<char>(Level::fast)) {
    item.value.assign(record, 1);
    return item;
  }
  if (get(item.key, item.value, &item.level) != Answer::ok) return std::nullopt;  // removed meanwhile
  return item;
}

std::vector<Item> HotStore::range(const Box& box) {
  std::vector<Item> items;
  for (const auto& [encoded, record] : engine_->range(schema_, box)) {
    if (auto item = item_of(encoded, record)) items.push_back(std::move(*item));
  }
  return items;
}

std::vector<Item> HotStore::event(std::uint64_t primary) {
  Box box = schema_.everything();
  box.lower[schema_.primary()] = box.upper[schema_.primary()] = primary;
  return range(box);
}

std::optional<Claim> HotStore::get_any(const std::string& owner, double lease_s, std::optional<Level> level) {
  Claimant claimant{owner, to_ms(lease_s), std::nullopt};
  if (level) claimant.level = static_cast<char>(*level);
  const std::optional<Grant> grant = engine_->get_any(claimant);
  if (!grant) return std::nullopt;
  return Claim{schema_.decode_primary(grant->primary), grant->token, grant->returned};
}

Answer HotStore::renew(const Claim& claim, double lease_s) {
  return engine_->renew(schema_.encode_primary(claim.primary), claim.token, to_ms(lease_s));
}

Answer HotStore::complete(const Claim& claim) {
  Records before;
  const Answer answer = engine_->complete(schema_.encode_primary(claim.primary), claim.token, before);
  if (second_) {
    for (const auto& [encoded, record] : before) erase_value_of(encoded, record);
  }
  return answer;
}

Answer HotStore::lock(std::uint64_t primary, const std::string& owner, Claim& claim) {
  Grant grant;
  const Answer answer = engine_->lock(schema_.encode_primary(primary), owner, grant);
  if (answer == Answer::ok) claim = {primary, grant.token, false};
  return answer;
}

Answer HotStore::unlock(const Claim& claim) {
  return engine_->unlock(schema_.encode_primary(claim.primary), claim.token);
}

std::vector<std::string> HotStore::check(const std::function<void()>& progress) {
  std::vector<std::string> found = engine_->check(progress);
  if (second_) {
    for (std::string& each : second_->check(progress)) found.push_back(std::move(each));
  }
  return found;
}

std::size_t HotStore::sweep() {
  return second().sweep([&](View name) {
    // Not one of ours: we do not erase it.
    if (name.size() != schema_.encoded_bytes() + kNameBytes) return true;
    const Bytes encoded(name.substr(0, schema_.encoded_bytes()));
    char level = 0;
    Bytes rest;
    return engine_->get(split(schema_, encoded), level, rest) == Answer::ok &&
           level == static_cast<char>(Level::large) && rest == name.substr(schema_.encoded_bytes());
  });
}

}  // namespace hotstore
