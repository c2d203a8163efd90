-- Returns how much other nodes have leased of one limit.
local version, sum = leased(ARGV[1], now_ms(call('TIME')))
return { 'leased', version, sum }
