import { describe, expect, it } from 'vitest'
import { Fault, isFault } from '../errors/fault.ts'
import { type Context, option } from './contexts.ts'
import type { ClientEnvironment } from './environment.ts'
import { explanationOf } from './explanations.ts'
import { Output } from './output.ts'
import { isPageLimit, nextPage, requestCommand } from './request-commands.ts'
import { usage } from './usage.ts'

interface Item {
  readonly name: string
  readonly scopes: readonly string[]
  readonly usedAtMicros: string | null
}

const ITEM: Item = { name: 'one', scopes: ['query', 'mutation'], usedAtMicros: '0' }

/** A context that keeps what is printed; no other part of it is used. */
function contextOf(json = false): { context: Context; printed: string[] } {
  const printed: string[] = []
  const stream = (name: string) => ({
    isTTY: false,
    write: async (text: string) => void printed.push(`${name}: ${text}`),
  })
  const environment = {
    system: { randomBytes: (length: number) => new Uint8Array(length) },
    stdout: stream('out'),
    stderr: stream('err'),
    variable: () => undefined,
  } as unknown as ClientEnvironment
  const output = new Output(environment, { json })
  return { context: { environment, output } as Context, printed }
}

/** Declares `things`, which opens a server that has `items` and records its steps. */
function things(items: readonly Item[], steps: string[] = [], failure: Fault | null = null) {
  const spec = requestCommand({
    name: 'things',
    summary: 'List the things',
    options: { kind: option('KIND', 'Only things of this kind') },
    input({ kind }, [prefix]) {
      if (kind === 'none') throw usage('--kind is not none.', spec)
      return { kind, prefix }
    },
    async open(_, options) {
      steps.push(`open ${options.kind}`)
      return { origin: 'https://one.example' }
    },
    announce: ({ prefix }) => `Looking for ${prefix}`,
    progress: 'reading the things',
    async request({ origin }, { kind, prefix }) {
      steps.push(`request ${origin} ${kind} ${prefix}`)
      if (failure !== null) throw failure
      return { items, next: items.length === 0 ? null : 'cursor' }
    },
    explains: { PRODUCT_NOT_FOUND: { detail: 'There are none.', next: 'Create one.' } },
    rows: (page) => page.items,
    columns: {
      NAME: 'name',
      SCOPES: 'scopes',
      USED: 'usedAtMicros',
      AT: ({ name }, { server, input }) => `${server.origin}/${input.prefix}${name}`,
    },
    empty: 'There is nothing.',
    note: nextPage,
  })
  return spec
}

const INVOCATION = { options: { kind: 'small' }, positionals: ['a'] }

describe('a command that is one request', () => {
  it('opens the server, sends the request and prints a table between its remarks', async () => {
    const steps: string[] = []
    const { context, printed } = contextOf()
    await things([ITEM, { ...ITEM, name: 'two', usedAtMicros: null }], steps).run(
      context,
      INVOCATION,
    )
    expect(steps).toEqual(['open small', 'request https://one.example small a'])
    expect(printed).toEqual([
      'err: Looking for a\n',
      'out: ' +
        'NAME  SCOPES          USED                  AT\n' +
        'one   query,mutation  1970-01-01T00:00:00Z  https://one.example/aone\n' +
        'two   query,mutation  -                     https://one.example/atwo\n',
      'err: More: --after cursor\n',
    ])
  })

  it('prints the response as its document and no remark with --json', async () => {
    const { context, printed } = contextOf(true)
    await things([ITEM]).run(context, INVOCATION)
    expect(printed.map((text) => JSON.parse(text.replace('out: ', '')))).toEqual([
      { items: [ITEM], next: 'cursor' },
    ])
  })

  it('prints its sentence instead of a table without rows', async () => {
    const { context, printed } = contextOf()
    await things([]).run(context, INVOCATION)
    expect(printed).toEqual(['err: Looking for a\n', 'out: There is nothing.\n'])
  })

  it('checks the command line before it opens anything', async () => {
    const steps: string[] = []
    const { context, printed } = contextOf()
    const line = { options: { kind: 'none' }, positionals: [] }
    const error = await things([ITEM], steps)
      .run(context, line)
      .catch((fault) => fault)
    expect(isFault(error, 'CLIENT_USAGE')).toBe(true)
    expect([steps, printed]).toEqual([[], []])
  })

  it('explains a failure with a code that it names, and no other', async () => {
    const { context } = contextOf()
    const failed = (fault: Fault) =>
      things([], [], fault)
        .run(context, INVOCATION)
        .catch((error) => error)
    const explained = await failed(new Fault('PRODUCT_NOT_FOUND'))
    expect(explained.code).toBe('PRODUCT_NOT_FOUND')
    expect([explained.detail, explanationOf(explained).next]).toEqual([
      'There are none.',
      'Create one.',
    ])
    const other = new Fault('PRODUCT_INVALID')
    expect(await failed(other)).toBe(other)
  })
})

it.each([
  ['1', true],
  ['1000', true],
  ['0', false],
  ['1001', false],
  ['01', false],
  ['1.5', false],
  ['', false],
])('a page of %j entries is allowed: %j', (text, isAllowed) => {
  expect(isPageLimit(text)).toBe(isAllowed)
})
