/** The globals of a Workspace's realm, compared with those of the runtime. */
import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { Driver, resultOf } from '../../../testing/runner-hosts.ts'
import { encodeStored } from '../../value/stored.ts'
import type { Value } from '../../value/values.ts'
import type { FromRunner } from '../protocol/messages.ts'

describe('globals', () => {
  const driver = new Driver(`
    url: query((ctx, { url, base }) => {
      try {
        const found = base === undefined ? new URL(url) : new URL(url, base)
        const { href, origin, host, pathname, search, hash, searchParams } = found
        return [href, origin, host, pathname, search, hash, [...searchParams]]
      } catch { return null }
    }),
    params: query((ctx, { text }) => {
      const found = new URLSearchParams(text)
      found.append('é &', 'x y+'); found.set('a', '1'); found.delete('b'); found.sort()
      return [found.toString(), found.size, found.get('a'), found.has('b')]
    }),
    linked: query(() => {
      const found = new URL('http://x/?a=1')
      found.searchParams.append('b', '2')
      found.hash = 'h'; found.search += '&c=3'; found.port = '81'
      return [found.href, found.searchParams.get('c')]
    }),
    text: query((ctx, { text, bytes }) => [
      new TextEncoder().encode(text), new TextDecoder().decode(bytes),
      [...atob(btoa('\\xff\\0a'))].length,
    ]),
    clone: query(() => {
      const map = new Map([[1, new Set([2])]])
      const original = { list: [1, { at: new Date(5) }], map, bytes: new Uint8Array([7]) }
      original.self = original
      const copy = structuredClone(original)
      const at = copy.list[1].at.getTime()
      return [copy !== original, copy.self === copy, at, [...copy.map.get(1)], copy.bytes]
    }),
    named: query(() => {
      const own = new DOMException('m', { name: 'DataCloneError', cause: 1 })
      return [AbortSignal.abort().reason, own, new DOMException()].map((found) => [
        found instanceof DOMException && found instanceof Error,
        found.name, found.message, found.code, found.cause ?? null,
      ])
    }),
    console: query(() => {
      console.group('a'); console.count(); console.count('b'); console.count(); console.groupEnd()
      console.countReset(); console.count(); console.time(); console.timeLog('default', 1)
      console.timeEnd(); console.timeEnd(); console.clear(); console.groupCollapsed()
    }),
    misnamed: query(() => Object.getOwnPropertyNames(globalThis).filter((name) => {
      const found = globalThis[name]
      return typeof found === 'function' && found.name !== name
    })),
    zero: query(() => crypto.getRandomValues(new Uint8Array(8))),
    times: query(() => [
      Date.now(), new Date().getTime(), new Date(5).getTime(), typeof Date(), Date.UTC(1970, 0, 2),
      new Date() instanceof Date, new Intl.DateTimeFormat('en').format(),
      new Date().getTimezoneOffset(),
    ]),
    own: query((ctx, input) => [
      input instanceof Object, input.list instanceof Array, input.bytes instanceof Uint8Array,
    ]),`)
  const fields = (record: Record<string, Value>) => encodeStored(new Map(Object.entries(record)))

  test('each function has the name of its global', () => {
    expect(resultOf(driver.run('misnamed'))).toEqual([])
  })

  test('an abort ends with a DOMException', () => {
    expect(resultOf(driver.run('named'))).toEqual([
      [true, 'AbortError', 'The operation was aborted.', 20, null],
      [true, 'DataCloneError', 'm', 25, 1],
      [true, 'Error', '', 0, null],
    ])
  })

  test('the console counts and measures for each call, and shows a Query no clock', () => {
    for (let i = 0; i < 2; i++) {
      const { message } = driver.run('console')
      expect(message).toMatchObject({ type: 'returned', usage: { usedClock: false } })
      const { logs } = (message as Extract<FromRunner, { type: 'returned' }>).usage
      expect(logs.map((line) => line.message)).toEqual([
        'a',
        'default: 1',
        'b: 1',
        'default: 2',
        'default: 1',
        'default: 0 ms',
        'default: 0 ms',
      ])
    }
  })

  test('URL parses as the one of the runtime does', { tags: ['slow'] }, () => {
    const part = fc.oneof(
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
      fc.string(),
    )
    fc.assert(
      fc.property(part, fc.option(part, { nil: undefined }), (url, base) => {
        let expected: unknown = null
        try {
          const found = new URL(url, base)
          const { href, origin, host, pathname, search, hash } = found
          expected = [href, origin, host, pathname, search, hash, [...found.searchParams]]
        } catch {}
        const input = fields(base === undefined ? { url } : { url, base })
        expect(resultOf(driver.run('url', input))).toEqual(expected)
      }),
      { seed: 20_261_121, numRuns: inputs(500) },
    )
  })

  test('URLSearchParams reads and writes as the one of the runtime does', {
    tags: ['slow'],
  }, () => {
    fc.assert(
      fc.property(fc.oneof(fc.webQueryParameters(), fc.string({ unit: 'grapheme' })), (text) => {
        const found = new URLSearchParams(text)
        found.append('é &', 'x y+')
        found.set('a', '1')
        found.delete('b')
        found.sort()
        const expected = [found.toString(), found.size, found.get('a'), found.has('b')]
        expect(resultOf(driver.run('params', fields({ text })))).toEqual(expected)
      }),
      { seed: 20_261_121, numRuns: inputs(500) },
    )
    expect(resultOf(driver.run('linked'))).toEqual(['http://x:81/?a=1&b=2&c=3#h', '3'])
  })

  test('text is encoded and decoded as the runtime does', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.uint8Array(), (text, bytes) => {
        const encoded = Buffer.from(text).toString('base64url')
        const decoded = new TextDecoder().decode(bytes)
        const found = resultOf(driver.run('text', fields({ text, bytes })))
        expect(found).toEqual([{ $b: encoded }, decoded, 3])
      }),
      { seed: 20_261_121, numRuns: 300 },
    )
  })

  test('structuredClone copies data with its cycles', () => {
    expect(resultOf(driver.run('clone'))).toEqual([true, true, 5, [2], { $b: 'Bw' }])
  })

  test('the time of a Query stands still', () => {
    const millis = 1_800_000_000_123
    const expected = [millis, millis, 5, 'string', 86_400_000, true, '1/15/2027', 0]
    expect(resultOf(driver.run('times'))).toEqual(expected)
  })

  test('arguments are objects of the realm of the Workspace', () => {
    const text = '{"list":[1],"bytes":{"$b":"AQ"}}'
    expect(resultOf(driver.run('own', text))).toEqual([true, true, true])
  })
})
