import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { writeWorkspace } from '../new-workspaces.ts'
import { formatProblem } from '../workspace/problems.ts'
import { loadTypeChecker } from './checker-process.ts'
import type { TypeCheckRequest, TypeCheckResult } from './messages.ts'

const MODULES = join(import.meta.dirname, '../../../node_modules')
let directory = ''
let check: (request: TypeCheckRequest) => TypeCheckResult

beforeAll(async () => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'svc-types-')))
  writeWorkspace(directory, { name: 'Chat' })
  check = await loadTypeChecker(directory)
})
beforeEach(() => rmSync(join(directory, 'functions/extra.ts'), { force: true }))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const FILES = ['schema.ts', '_generated/api.ts', '_generated/globals.d.ts', '_generated/svc.d.ts']

/** Checks a module with one Function and returns its problems as texts. */
function problemsOf(
  source: string,
  { kind = 'mutation', secrets = [] }: Partial<TypeCheckRequest['functions'][number]> = {},
  checked = check,
): string[] {
  const file = 'functions/extra.ts'
  writeFileSync(join(directory, file), source)
  const functions = [{ name: 'extra.run', kind, file, exported: 'run', secrets }]
  return checked({ files: [...FILES, file], functions }).problems.map(formatProblem)
}

const run = (kind: string, body: string) =>
  `import { ${kind}, v } from 'svc'\nexport const run = ${kind}({\n` +
  `  clients: ['public'],\n` +
  `  arguments: { id: v.id('messages') },\n  handler: async (ctx, { id }) => {\n${body}\n  },\n})\n`

test('a new Workspace has no problems, with any lib of the compiler embedded', () => {
  const files = [...FILES, 'functions/channels.ts', 'functions/messages.ts']
  const result = check({ files, functions: [] })
  expect(result).toEqual({ problems: [], compiler: expect.stringMatching(/^6\..*, embedded$/) })
})

test('an unknown index names the known ones, with line, column, frame and fix', () => {
  const [problem, ...others] = problemsOf(
    run('query', "    return ctx.db.table('messages').index('byTickets', (q) => q.eq('x', 1))"),
    { kind: 'query' },
  )
  expect(others).toEqual([])
  expect(problem).toBe(
    [
      'functions/extra.ts:6:43',
      '  The table has no index "byTickets".',
      '    5 |   handler: async (ctx, { id }) => {',
      "  > 6 |     return ctx.db.table('messages').index('byTickets', (q) => q.eq('x', 1))",
      '      |                                           ^',
      '    7 |   },',
      '  Use "byAuthor" or "byChannel", or add the index in schema.ts.',
    ].join('\n'),
  )
})

const MISTAKES: readonly (readonly [string, string, string, string])[] = [
  [
    'an error code that is not declared',
    'mutation',
    "    return ctx.fail('GONE')",
    'does not declare the error "GONE".*Add errors: { GONE: "conflict" }',
  ],
  [
    'a wrong field of a patch',
    'mutation',
    '    await ctx.db.patch(id, { likez: 1n })',
    '"likez" is not a field here.*(Check its spelling|Write "likes")',
  ],
  [
    'a write in a Query',
    'query',
    '    await ctx.db.delete(id)',
    'A Query only reads: its ctx.db has no "delete".*mutation',
  ],
  [
    'a number for an int64',
    'mutation',
    '    await ctx.db.patch(id, { likes: 1 })',
    "'number' is not assignable.*Write a bigint",
  ],
  [
    'a table that does not exist',
    'query',
    "    return ctx.db.table('tickets').scan().collect()",
    'no table "tickets".*Use "channels" or "messages"',
  ],
  [
    'a global of Node',
    'query',
    "    return process.env.HOME ?? ''",
    '"process" is not available.*ctx.config.variable',
  ],
  [
    'a write that nothing awaits',
    'mutation',
    '    ctx.db.patch(id, { likes: 1n })',
    'Nothing waits for ctx.db.patch.*Write await',
  ],
  [
    'promises in forEach',
    'mutation',
    '    ;[1n, 2n].forEach(async (likes) => { await ctx.db.patch(id, { likes }) })',
    'forEach waits for none.*Promise.all',
  ],
  [
    'fetch in a Query',
    'query',
    "    await fetch('https://a.example')",
    'A Query has no fetch.*action',
  ],
  [
    'a secret that is not declared',
    'action',
    "    return ctx.config.secret('API_KEY')",
    'extra.run reads the secret "API_KEY".*Add uses: { secrets: \\["API_KEY"\\] }',
  ],
]

test.each(MISTAKES)('%s is found at its line, with a fix', (_, kind, body, form) => {
  const found = problemsOf(run(kind, body), { kind: kind as 'query' })
  expect(found).toHaveLength(1)
  expect(found[0]).toMatch(/^functions\/extra\.ts:6:\d+\n/)
  expect(found[0]!.replaceAll(/\n\s*/g, ' ')).toMatch(new RegExp(form))
})

test('fetch is found through the functions that a Query calls, and allowed in an Action', () => {
  const helper = "const load = (url: string) => fetch(url)\nfunction near() { return load('x') }\n"
  const inQuery = helper + run('query', '    return String(await near())')
  expect(problemsOf(inQuery, { kind: 'query' })).toEqual([
    expect.stringMatching(/^functions\/extra\.ts:1:31\n.*extra\.run -> near -> load\./),
  ])
  const inAction = helper + run('action', '    return String(await near())')
  expect(problemsOf(inAction, { kind: 'action' })).toEqual([])
})

test('a declared secret, an awaited write and a void promise are accepted', () => {
  const secret = run('action', "    return ctx.config.secret('API_KEY')")
  expect(problemsOf(secret, { kind: 'action', secrets: ['API_KEY'] })).toEqual([])
  const written = '    void ctx.db.get(id)\n    await ctx.db.patch(id, { likes: 1n })'
  expect(problemsOf(run('mutation', written))).toEqual([])
})

test('a check notices a file that was fixed, and one that was removed', () => {
  const wrong = run('mutation', "    return ctx.fail('GONE')")
  expect(problemsOf(wrong)).toHaveLength(1)
  expect(problemsOf(wrong.replace("ctx.fail('GONE')", 'null'))).toEqual([])
  rmSync(join(directory, 'functions/extra.ts'))
  expect(check({ files: FILES, functions: [] }).problems).toEqual([])
})

test('an installed TypeScript 6 or 7 of the Workspace is used', async () => {
  const modules = join(directory, 'node_modules')
  const wrong = run('query', "    return ctx.db.table('messages').index('byTickets').collect()")
  const expected = problemsOf(wrong, { kind: 'query' })
  symlinkSync(join(MODULES, '@typescript'), join(modules, '@typescript'))
  for (const [name, version] of [
    ['typescript', '7 or newer'],
    ['typescript-api', '6.'],
  ] as const) {
    symlinkSync(join(MODULES, name), join(modules, 'typescript'))
    const checked = await loadTypeChecker(directory)
    expect(problemsOf(wrong, { kind: 'query' }, checked)).toEqual(expected)
    const { compiler } = checked({ files: FILES, functions: [] })
    expect(compiler.startsWith(version) && compiler.endsWith('installed')).toBe(true)
    rmSync(join(modules, 'typescript'))
  }
  rmSync(join(modules, '@typescript'))
})
