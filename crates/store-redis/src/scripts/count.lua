-- Adds to the books of one day what changed no order.
local desk, days, books = unpack(KEYS)
local line, day, keep_books_until, grace = unpack(ARGV, 1, 4)
local FIRST_TALLY = 5

local seal = call('HGET', desk, 'seal')
if seal then
  return { 'sealed', seal }
end
book(books, days, line, FIRST_TALLY, day, keep_books_until, grace, call('TIME'))
return { 'done' }
