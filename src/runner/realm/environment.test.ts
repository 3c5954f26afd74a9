/** What the calls of a Release share, and that the code of one leaves nothing there to the next. */
import { expect, test } from 'vitest'
import { Driver, resultOf } from '../../../build/testing/runner-hosts.ts'

/**
 * Makes what builtins make: each function that the globals lead to is called on fresh receivers,
 * and the first thing of each kind that one gives is a receiver in its turn. What two calls of one
 * function both lead to is shared by all calls. Answers how each such thing that is not frozen was
 * come by, and the tags of all kinds.
 */
const WALK = `
  const open = [Array, Array.prototype, Object.getPrototypeOf([].values())]
  const isOpen = (it) => !Object.isFrozen(it) && !open.includes(it)
  const isObject = (it) => (typeof it === 'object' && it !== null) || typeof it === 'function'
  const tried = (work) => {
    try {
      const made = work()
      if (made instanceof Promise) made.catch(() => {})
      return made
    } catch {}
  }
  const held = (it) => Reflect.ownKeys(it).map((key) => Reflect.getOwnPropertyDescriptor(it, key))
  const functions = (it) =>
    held(it).flatMap(({ value, get }) => [value, get]).filter((it) => typeof it === 'function')

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
    () => [], () => ['a'], () => [1], () => [(it) => it], () => [[[1]]], () => [/a/g],
    () => [{ next: () => ({ done: true }) }], () => [[1], (it) => it], () => [[[1]], [[1]]],
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

test('what calls share is frozen, whichever builtin gives it', () => {
  const driver = new Driver(`walk: query(() => {${WALK}}),`)
  const [found, tags] = resultOf(driver.run('walk')) as [string[], string[]]
  // Which a constructor, a method and a method of what that gives lead to.
  expect(tags).toContain('Segment String Iterator')
  expect(found).toEqual([])
})

test('what accessors of the builtins are made of is frozen too', () => {
  const driver = new Driver(`loose: query(() => Reflect.ownKeys(globalThis)
    .flatMap((name) => [globalThis[name], globalThis[name]?.prototype])
    .filter((it) => Object(it) === it)
    .flatMap((it) => Object.values(Object.getOwnPropertyDescriptors(it)))
    .flatMap(({ get, set }) => [get, set])
    .filter((it) => it !== undefined && !Object.isFrozen(it)).length),`)
  expect(resultOf(driver.run('loose'))).toBe(0)
})

test('what a call matched is nowhere for the next', () => {
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

test('an error of each kind takes a name and a message of its own', () => {
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
