-- beat: register the replica, and prolong each claim it still holds by its own lease.
-- KEYS[1] base   ARGV[1] msgpack [replica, is gone, fires, beats every, info, [[id, fence], ...]]
-- touches  base:time base:replicas (hash: id to msgpack started, seen, beats every, fires, info)  base:fleet (hash:
--   epoch, version)  base:state base:running base:held:<replica> base:body  base:alive:<replica> (while it beats in time)
-- answers  [now, lost, cancelling (places in what is held), unknown claims, epoch, earliest lease end, version]
-- uses  clock basics records claims
local replica, is_gone, fires, every, info, held = unpack(cmsgpack.unpack(ARGV[1]))

local function is_firing(member)
  return member[4] == 1 and now - member[2] <= 3 * member[3]
end

local known = redis.call('HGET', base .. ':replicas', replica)
if is_gone then
  redis.call('HDEL', base .. ':replicas', replica)
  redis.call('DEL', base .. ':alive:' .. replica)
else
  local started = now
  if known then
    started = cmsgpack.unpack(known)[1]
  elseif fires == 1 then
    local is_first = true
    for _, other in ipairs(redis.call('HVALS', base .. ':replicas')) do
      if is_firing(cmsgpack.unpack(other)) then is_first = false end
    end
    if is_first then redis.call('HINCRBY', base .. ':fleet', 'epoch', 1) end
  end
  redis.call('HSET', base .. ':replicas', replica, cmsgpack.pack({ started, now, every, fires, info }))
  redis.call('SET', base .. ':alive:' .. replica, '1', 'PX', string.format('%.0f', math.max(1.5 * every, 1)))
end

local ids, is_held, lost, cancelling, prolonged = {}, {}, {}, {}, {}
for n, ref in ipairs(held) do ids[n] = ref[1] end
for n, text in ipairs(read_many('HMGET', base .. ':state', ids)) do
  local fields = text and read_state(text)
  if not fields or fields[1] ~= 'x' or fields[2] ~= held[n][2] then
    lost[#lost + 1] = n
  else
    prolonged[#prolonged + 1] = now + fields[9]
    prolonged[#prolonged + 1] = ids[n]
    is_held[ids[n]] = true
    if fields[8] then cancelling[#cancelling + 1] = n end
  end
end
write_many('ZADD', base .. ':running', prolonged)

local unknown = {}
for _, id in ipairs(redis.call('SMEMBERS', base .. ':held:' .. replica)) do
  if not is_held[id] then unknown[#unknown + 1] = id end
end
local fleet = redis.call('HMGET', base .. ':fleet', 'epoch', 'version')
local first = redis.call('ZRANGE', base .. ':running', 0, 0, 'WITHSCORES')
return {
  now, lost, cancelling, show_claims(unknown), tonumber(fleet[1]) or 0, first[2] and tonumber(first[2]) or false,
  tonumber(fleet[2]) or 0,
}
