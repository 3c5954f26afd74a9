import { describe, expect, test } from 'vitest'
import { parseTraceContext, traceParent } from './trace-context.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const VALID = `00-${TRACE}-${SPAN}-01`

describe('traceparent', () => {
  test.each([
    [VALID, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-ff`, true],
    [`00-${TRACE}-${SPAN}-02`, false],
    [`cc-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-adds`, true],
  ])('traceparent %s is valid, and bit 0 of its flags is the sampled flag', (header, isSampled) => {
    const context = parseTraceContext(header, null)
    expect(context).toEqual({ traceId: TRACE, spanId: SPAN, isSampled, state: null })
  })

  test.each([
    ['an empty text', ''],
    ['a text without fields', 'x'],
    ['a trace ID of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a parent ID of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a short trace ID', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a long trace ID', `00-${TRACE}0-${SPAN}-01`],
    ['a short parent ID', `00-${TRACE}-${SPAN.slice(1)}-01`],
    ['a long parent ID', `00-${TRACE}-${SPAN}0-01`],
    ['upper case', VALID.toUpperCase()],
    ['digits that are not hexadecimal', VALID.replace('0af7', '0agz')],
    ['short flags', VALID.slice(0, -1)],
    ['long flags', `${VALID}0`],
    ['no flags', VALID.slice(0, -3)],
    ['a short version', VALID.slice(1)],
    ['version ff', `ff${VALID.slice(2)}`],
    ['a version that is not hexadecimal', `0x${VALID.slice(2)}`],
    ['version 00 with more fields', `${VALID}-more`],
    ['version 00 with a hyphen at the end', `${VALID}-`],
    ['a later version without a hyphen before what follows', `cc${VALID.slice(2)}.more`],
    ['a later version that is too long', `cc${VALID.slice(2)}-${'x'.repeat(500)}`],
    ['two headers that were joined', `${VALID}, ${VALID}`],
    ['two headers of a later version that were joined', `cc${VALID.slice(2)}-a, ${VALID}`],
    ['a blank before it', ` ${VALID}`],
    ['a blank after it', `${VALID} `],
    ['a line end after it', `${VALID}\n`],
    ['other hyphens', VALID.replaceAll('-', '\u2010')],
    ['digits of another script', VALID.replace('0af', '\uff10af')],
  ])('traceparent %s is malformed', (_, header) => {
    expect(parseTraceContext(header, 'a=1')).toBeNull()
  })

  test('traceparent is absent without a header, even with a tracestate', () => {
    expect(parseTraceContext(null, 'a=1')).toBeNull()
  })

  test('traceparent is written as it is read', () => {
    expect(traceParent(parseTraceContext(VALID, null)!)).toBe(VALID)
  })
})

describe('tracestate', () => {
  const stateOf = (state: string) => parseTraceContext(VALID, state)!.state

  test.each([
    ['rojo=00f067aa0ba902b7', 'rojo=00f067aa0ba902b7'],
    ['rojo=1,congo=t61rcWkgMzE', 'rojo=1,congo=t61rcWkgMzE'],
    [' rojo=1 ,\tcongo=2,, ', 'rojo=1,congo=2'],
    ['tenant@vendor=value with blanks', 'tenant@vendor=value with blanks'],
    ['0a_b-c*d/e=!', '0a_b-c*d/e=!'],
    [`a=${'x'.repeat(256)}`, `a=${'x'.repeat(256)}`],
  ])('tracestate %s is passed on', (state, passed) => {
    expect(stateOf(state)).toBe(passed)
  })

  test.each([
    ['no value', 'a='],
    ['no key', '=1'],
    ['no equals sign', 'a'],
    ['upper case in a key', 'A=1'],
    ['two equals signs', 'a=b=c'],
    ['a repeated key', 'a=1,b=2,a=3'],
    ['a long value', `a=${'x'.repeat(257)}`],
    ['a control character', 'a=1\u0001'],
    ['another script', 'a=\u00e9'],
    ['a second tenant', 'a@b@c=1'],
    ['more than 32 members', Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(',')],
    ['more than 512 characters', `a=${'x'.repeat(255)},b=${'x'.repeat(255)}`],
    ['nothing', ' , '],
  ])('tracestate with %s is dropped, and traceparent is kept', (_, state) => {
    expect(parseTraceContext(VALID, state)).toMatchObject({ traceId: TRACE, state: null })
  })
})
