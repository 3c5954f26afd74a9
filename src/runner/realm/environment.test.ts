/** Objects that the calls of a Release share: the code of one call changes none of them. */
import { expect, test } from 'vitest'
import { Driver, errorOf, resultOf } from '../../../testing/runner-hosts.ts'

/**
 * Calls each function that the globals lead to on fresh receivers; the first result of each kind is
 * a receiver in its turn. Objects to which the results of two calls of one function both lead are
 * shared by all calls. Returns the path to each such object that is not frozen, and the tags of all
 * kinds.
 */
const WALK = `
  const open = [Array, Array.prototype, Object.getPrototypeOf([].values())]
  const isOpen = (one) => !Object.isFrozen(one) && !open.includes(one)
  const isObject = (one) => (typeof one === 'object' && one !== null) || typeof one === 'function'
  const tried = (work) => {
    try {
      const made = work()
      if (made instanceof Promise) made.catch(() => {})
      return made
    } catch {}
  }
  const { getOwnPropertyDescriptor, ownKeys } = Reflect
  const held = (one) => ownKeys(one).map((key) => getOwnPropertyDescriptor(one, key))
  const functions = (one) =>
    held(one).flatMap(({ value, get }) => [value, get]).filter((one) => typeof one === 'function')

  const kinds = new Set()
  const receivers = []
  const found = []

  /** It, what it holds, and the prototypes of them all. */
  const around = (made) => {
    const all = []
    for (let each of [made, ...(isObject(made) ? held(made).map(({ value }) => value) : [])]) {
      for (; each !== undefined && each !== null; each = Object.getPrototypeOf(each)) {
        if (isObject(each)) all.push(each)
      }
    }
    return all
  }
  const look = (path, make) => {
    const made = tried(make)
    const kind = made === undefined || made === null ? null : Object.getPrototypeOf(made)
    const isNew = kind !== null && !kinds.has(kind)
    const loose = around(made).filter(isOpen)
    if (!isNew && loose.length === 0) return
    const others = around(tried(make))
    if (loose.some((one) => others.includes(one))) found.push(path)
    if (!isNew || !others.includes(kind)) return
    kinds.add(kind)
    receivers.push([path, kind, make])
  }
  const ARGUMENTS = [
    () => [], () => ['a'], () => [1], () => [(one) => one], () => [[[1]]], () => [/a/g],
    () => [{ next: () => ({ done: true }) }], () => [[1], (one) => one], () => [[[1]], [[1]]],
  ]
  const call = (path, owner, of) => {
    for (const each of functions(owner)) for (const give of ARGUMENTS) {
      look(path + '.' + each.name + '()', () => Reflect.apply(each, of(), give()))
      look('new ' + path + '.' + each.name, () => Reflect.construct(each, give()))
    }
  }

  for (const make of [
    () => 'a', () => 1, () => 1n, () => true, () => Symbol(), () => [1], () => ({}), () => /a/g,
    () => () => 1, () => async () => 1, () => (function* () {})(), () => (async function* () {})(),
  ]) look(String(make), make)
  const owners = new Set([globalThis])
  for (const owner of owners) {
    call(owner.name ?? String(owner), owner, () => owner)
    for (const { value } of held(owner)) {
      if (isObject(value) && value !== owner.prototype) owners.add(value)
    }
  }
  for (const [path, kind, make] of receivers) {
    for (let at = kind; at !== null; at = Object.getPrototypeOf(at)) call(path, at, make)
  }
  return [found, [...kinds].map((kind) => tried(() => kind[Symbol.toStringTag]) ?? null)]
`

test('shared objects are frozen, whichever builtin returns them', { tags: ['slow'] }, () => {
  const driver = new Driver(`walk: query(() => {${WALK}}),`)
  const [found, tags] = resultOf(driver.run('walk')) as [string[], string[]]
  // Reached by a constructor, a method and a method of its result.
  expect(tags).toContain('Segment String Iterator')
  expect(found).toEqual([])
})

test('the functions of accessors of builtins are frozen', () => {
  const driver = new Driver(`loose: query(() => Reflect.ownKeys(globalThis)
    .flatMap((name) => [globalThis[name], globalThis[name]?.prototype])
    .filter((one) => Object(one) === one)
    .flatMap((one) => Object.values(Object.getOwnPropertyDescriptors(one)))
    .flatMap(({ get, set }) => [get, set])
    .filter((one) => one !== undefined && !Object.isFrozen(one)).length),`)
  expect(resultOf(driver.run('loose'))).toBe(0)
})

test('text that a call matched is not visible to the next', () => {
  const driver = new Driver(`
    match: query((ctx, { text }) => {
      try { RegExp.input = text } catch {}
      return /secret-(\\w+)/.exec(text)[1]
    }),
    look: query(() => Reflect.ownKeys(RegExp).flatMap((key) => {
      const found = RegExp[key]
      return typeof found === 'string' && key !== 'name' ? [[String(key), found]] : []
    })),`)
  expect(resultOf(driver.run('match', '{"text":"a secret-alice b"}'))).toBe('alice')
  expect(resultOf(driver.run('look'))).toEqual([])
})

test('an error of each kind can be assigned a name and a message', () => {
  const driver = new Driver(`name: query(() => Object.getOwnPropertyNames(globalThis)
    .map((name) => globalThis[name])
    .filter((kind) => kind === Error || kind?.prototype instanceof Error)
    .map((kind) => {
      class Own extends kind {
        constructor() {
          super([], [], 'theirs')
          this.name = 'Own'
          this.message = kind.name
        }
      }
      return String(new Own())
    })),`)
  const named = resultOf(driver.run('name')) as string[]
  expect(named).toContain('Own: SuppressedError')
  expect(named).toContain('Own: AggregateError')
  expect(named.every((text) => text.startsWith('Own: '))).toBe(true)
})

test('globals that the script replaces change nothing for the code of the realm', () => {
  const driver = new Driver(`...(() => {
      const scope = globalThis
      for (const name of Object.getOwnPropertyNames(scope)) {
        try { scope[name] = undefined } catch {}
      }
      return {}
    })(),
    replaced: query(() => [typeof globalThis.Map, typeof globalThis.JSON]),
    values: query(async (ctx, input) => {
      const document = await ctx.db.get(input.id)
      console.log('read', { document, map: new Map([[1, 2]]) })
      const url = new URL('?a=b c', 'https://a.test/')
      return [input, document.n, crypto.randomUUID().length, url.href, btoa('a'), ctx.now() > 0n]
    }),
    describes: query(() => [new Map()]),
    pages: query((ctx) => ctx.db.table('notes').index('byA', (q) => q.eq('a', 1)).collect()),
    throws: query(() => { throw new TypeError('thrown by the code') }),`)
  const input = '{"id":"x_1","bytes":{"$b":"AQ"},"large":{"$i":"9"}}'
  expect(resultOf(driver.run('replaced'))).toEqual(['undefined', 'undefined'])
  expect(resultOf(driver.run('values', input, () => '{"n":{"$i":"7"}}'))).toEqual([
    JSON.parse(input),
    { $i: '7' },
    36,
    'https://a.test/?a=b%20c',
    'YQ==',
    true,
  ])
  expect(errorOf(driver.run('describes'))).toContain('result[0] is a Map')
  const page = '{"documents":[1],"done":true,"cursor":null}'
  expect(resultOf(driver.run('pages', '{}', () => page))).toEqual([1])
  expect(errorOf(driver.run('throws'))).toBe('TypeError: thrown by the code')
})
