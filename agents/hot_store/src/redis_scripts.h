// The store's operations inside Redis. A script runs alone on its node, so that
// each is one step. The answers' numbers are those of redis_engine.cpp. All
// keys are of one bucket:
//   <tag>e:<primary>  hash: rest of the key -> record      <tag>m:<primary>
//   hash: n1, n2 (fragments at each level),
//                                                          and of its lock t
//                                                          (token), d
//                                                          (deadline, ms; 0:
//                                                          none), o (owner)
//   <tag>all          every event, in order of its key     <tag>f1, <tag>f2
//   those without a lock, by level <tag>due          the leases by deadline
//   <tag>t            the last token
#pragma once

namespace hotstore::scripts {

// A server whose memory is full refuses a script's first command that would add
// something, and none after a command that removes: the scripts that claim, renew
// and complete remove something first, so that a full store can still be emptied.
//
// Stands before each of the others. KEYS: e m all f1 f2 due t. ARGV starts with
// the primary key.
constexpr const char* kCommon = R"lua(
local e, m, all, free, due = KEYS[1], KEYS[2], KEYS[3], {['1'] = KEYS[4], ['2'] = KEYS[5]}, KEYS[6]
local p = ARGV[1]
local function now() local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000) end
local function fence(token)
  local l = redis.call('HMGET', m, 't', 'd')
  local holds = l[1] and (l[2] == '0' or tonumber(l[2]) >= now())
  if token == '0' then return holds and 3 or 0 end
  return (holds and l[1] == token) and 0 or 4
end
local function outline(r) return string.sub(r, 1, 1) == '1' and '1' or r end
local function grow(level)
  if redis.call('HINCRBY', m, 'n' .. level, 1) == 1 and redis.call('HEXISTS', m, 't') == 0 then
    redis.call('ZADD', free[level], 0, p)
  end
end
local function shrink(level)
  if redis.call('HINCRBY', m, 'n' .. level, -1) > 0 then return end
  redis.call('ZREM', free[level], p)
  if redis.call('EXISTS', e) == 0 then
    redis.call('DEL', m) redis.call('ZREM', all, p) redis.call('ZREM', due, p)
  end
end
)lua";

constexpr const char* kPut = R"lua(
if redis.call('HSETNX', e, ARGV[2], ARGV[3]) == 0 then
  if ARGV[4] == '1' and redis.call('HGET', e, ARGV[2]) == ARGV[3] then
    redis.call('HSET', e, ARGV[2], ARGV[3]) return 0
  end
  return 1
end
redis.call('ZADD', all, 0, p)
grow(string.sub(ARGV[3], 1, 1))
return 0
)lua";

constexpr const char* kUpdate = R"lua(
local before = redis.call('HGET', e, ARGV[2])
if not before then return {2} end
local allowed = fence(ARGV[4])
if allowed ~= 0 then return {allowed} end
if ARGV[5] == '1' and before ~= ARGV[6] then return {5} end
redis.call('HSET', e, ARGV[2], ARGV[3])
local was, is = string.sub(before, 1, 1), string.sub(ARGV[3], 1, 1)
if was ~= is then grow(is) shrink(was) end
return {0, outline(before)}
)lua";

constexpr const char* kRemove = R"lua(
local allowed = fence(ARGV[3])
if allowed ~= 0 then return {allowed} end
local before = redis.call('HGET', e, ARGV[2])
if not before then return {2} end
redis.call('HDEL', e, ARGV[2])
shrink(string.sub(before, 1, 1))
return {0, outline(before)}
)lua";

constexpr const char* kComplete = R"lua(
local allowed = fence(ARGV[2])
if allowed ~= 0 then return {allowed} end
local found = redis.call('HGETALL', e)
if #found == 0 then return {2} end
local said = {0}
for i = 1, #found, 2 do said[#said + 1] = found[i] said[#said + 1] = outline(found[i + 1]) end
redis.call('DEL', e, m) redis.call('ZREM', all, p) redis.call('ZREM', due, p)
redis.call('ZREM', free['1'], p) redis.call('ZREM', free['2'], p)
return said
)lua";

// ARGV: -, owner, lease, level or nothing, the beginning of every event's m
// key. KEYS[1] and [2] are not used.
constexpr const char* kGetAny = R"lua(
local t, returned = now(), 1
p = nil
for _, each in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', '(' .. t, 'LIMIT', 0, 1024)) do
  if ARGV[4] == '' or tonumber(redis.call('HGET', ARGV[5] .. each, 'n' .. ARGV[4]) or 0) > 0 then p = each break end
end
if not p then
  returned = 0
  local levels = ARGV[4] == '' and {'1', '2'} or {ARGV[4]}
  for _, level in ipairs(levels) do
    p = redis.call('ZRANGE', free[level], 0, 0)[1]
    if p then break end
  end
end
if not p then return {} end
redis.call('ZREM', free['1'], p) redis.call('ZREM', free['2'], p)
local token = redis.call('INCR', KEYS[7])
redis.call('HSET', ARGV[5] .. p, 't', token, 'd', t + ARGV[3], 'o', ARGV[2])
redis.call('ZADD', due, t + ARGV[3], p)
return {p, token, returned}
)lua";

constexpr const char* kRenew = R"lua(
local allowed = fence(ARGV[2])
if allowed ~= 0 then return {allowed} end
local deadline = now() + ARGV[3]
redis.call('ZREM', due, p)
redis.call('HSET', m, 'd', deadline) redis.call('ZADD', due, deadline, p)
return {0}
)lua";

constexpr const char* kLock = R"lua(
local allowed = fence('0')
if allowed ~= 0 then return {allowed} end
if redis.call('EXISTS', e) == 0 then return {2} end
redis.call('ZREM', free['1'], p) redis.call('ZREM', free['2'], p) redis.call('ZREM', due, p)
local token = redis.call('INCR', KEYS[7])
redis.call('HSET', m, 't', token, 'd', 0, 'o', ARGV[2])
return {0, token}
)lua";

constexpr const char* kUnlock = R"lua(
local allowed = fence(ARGV[2])
if allowed ~= 0 then return {allowed} end
redis.call('HDEL', m, 't', 'd', 'o') redis.call('ZREM', due, p)
local n = redis.call('HMGET', m, 'n1', 'n2')
for i = 1, 2 do
  if tonumber(n[i] or 0) > 0 then redis.call('ZADD', free[tostring(i)], 0, p) end
end
return {0}
)lua";

}  // namespace hotstore::scripts
