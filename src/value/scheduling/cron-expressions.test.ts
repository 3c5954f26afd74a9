import { describe, expect, test } from 'vitest'
import { numericExpression, parseCronExpression } from './cron-expressions.ts'
import { isTimeZone } from './crons.ts'

describe('an expression', () => {
  test.each([
    ['0 7 * * mon-fri', '0 7 * 1,2,3,4,5,6,7,8,9,10,11,12 1,2,3,4,5'],
    [' 5\t1-3,22  1 JAN,3 * ', '5 1,2,3,22 1 1,3 *'],
    ['0 0 29 feb *', '0 0 29 2 *'],
    ['0 0 31 2 sun', '0 0 31 2 0'],
    ['0 0 1 1 fri-sun,7', '0 0 1 1 0,5,6'],
    ['0 0 1 1 5-7', '0 0 1 1 0,5,6'],
    ['7-59/20 0 */10 1 *', '7,27,47 0 1,11,21,31 1 *'],
    ['0,0,0 0 1 1 *', '0 0 1 1 *'],
  ])('the expression %s is read as its numbers', (text, numbers) => {
    expect(numericExpression(parseCronExpression(text))).toBe(numbers)
  })

  test.each([
    ['* * * *', 'five fields: minute, hour, day of month, month, day of week'],
    ['0 * * * * *', 'five fields: minute, hour, day of month, month, day of week'],
    ['@daily', 'five fields: minute, hour, day of month, month, day of week'],
    ['60 * * * *', 'a minute from 0 to 59'],
    ['0 24 * * *', 'an hour from 0 to 23'],
    ['0 0 0 * *', 'a day of month from 1 to 31'],
    ['0 0 * 13 *', 'a month from 1 to 12, or its name'],
    ['0 0 * * 8', 'a day of week from 0 to 7, or its name'],
    ['0 0 * mon *', 'a month from 1 to 12, or its name'],
    ['5/15 * * * *', 'a minute such as *, */5, 0 or 0-4'],
    ['*/0 * * * *', 'a step of minute from 1 to 59'],
    ['10-5 * * * *', 'a range of minute that ascends'],
    ['0 0 L * *', 'a day of month from 1 to 31'],
    ['0 0 ? * *', 'a day of month such as *, */5, 1 or 1-5'],
    ['1,,2 * * * *', 'a minute such as *, */5, 0 or 0-4'],
    ['-1 * * * *', 'a minute such as *, */5, 0 or 0-4'],
    ['*-5 * * * *', 'a minute such as *, */5, 0 or 0-4'],
    ['0 0 30 2 *', 'a day of month that one of the months has'],
    ['0 0 31 4,6 *', 'a day of month that one of the months has'],
  ])('the expression %s is rejected with what is expected', (text, rule) => {
    expect(() => parseCronExpression(text)).toThrow(expect.objectContaining({ rule }))
  })
})

test('a time zone is UTC or has a name of the IANA database', () => {
  expect(['UTC', 'Europe/Rome', 'America/Argentina/Buenos_Aires'].map(isTimeZone)).toEqual([
    true,
    true,
    true,
  ])
  expect(['', '+02:00', 'Europe/Nowhere', '2', 'Europe/Rome '].map(isTimeZone)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ])
})
