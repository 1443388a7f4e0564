-- basics: the order in which jobs are claimed, and commands with many arguments.

local SHARE = 1000
-- A lane's order: rank * 2^42 + due. Exact in a double, as ranks are small and due times lie before the year 2109.
local RANK = 4398046511104

-- Commands take a few thousand arguments at most.
local function write_many(command, key, list, share)
  share = share or SHARE
  for first = 1, #list, share do
    redis.call(command, key, unpack(list, first, math.min(first + share - 1, #list)))
  end
end

local function read_many(command, key, list)
  if #list == 0 then return {} end
  if #list <= SHARE then return redis.call(command, key, unpack(list)) end
  local found = {}
  for first = 1, #list, SHARE do
    local part = redis.call(command, key, unpack(list, first, math.min(first + SHARE - 1, #list)))
    for n = 1, #part do found[first + n - 1] = part[n] end
  end
  return found
end
