/** The guide to documents: its samples are one Workspace, which builds and does what it says. */
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runBuild } from '../src/dev/building/commands.ts'
import { startTypeChecker } from '../src/dev/type-check/type-check.ts'
import { testEnvironment } from '../src/test-kit/test-kit.ts'
import { describeHere } from '../testing/describe-here.ts'
import { anchors } from '../testing/markdown/markdown.ts'
import { workspaceSamples } from '../testing/markdown/workspace-samples.ts'
import { type KitWorkspace, kitWorkspace } from '../testing/test-kit/workspaces.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../src/docs/documents.md'), 'utf8')
const FILES = {
  ...workspaceSamples(GUIDE),
  'svc.json': '{ "workspace": "guide", "clients": ["public"] }\n',
}

let workspace: KitWorkspace
beforeAll(() => {
  workspace = kitWorkspace('empty', FILES)
  process.env.SVC_EXECUTABLE = workspace.executable
})
afterAll(() => workspace.remove())

const open = (options: Parameters<typeof testEnvironment>[0] = {}) =>
  testEnvironment({ workspace: workspace.directory, ...options })

type Caller = Pick<Awaited<ReturnType<typeof testEnvironment>>, 'query' | 'mutation'>

function build(directory: string) {
  const workspaceDirectory = realpathSync(directory)
  return runBuild({ workspaceDirectory, describe: describeHere, startTypeChecker })
}

// The tests know what each Function returns.
const call = <T = string>(caller: Caller, name: string, args = {}) =>
  caller.mutation(name, args) as Promise<T>
const ask = <T>(caller: Caller, name: string, args = {}) => caller.query(name, args) as Promise<T>

test('every sample builds and has correct types', { tags: ['slow'] }, async () => {
  const { build: built } = await build(workspace.directory)
  const { functions, tables, crons } = built.description
  expect(functions.length).toBeGreaterThan(40)
  expect(tables.map(({ name }) => name)).toContain('jobs')
  expect(crons).toHaveLength(1)
})

test('a wrong type in a sample is found', { tags: ['slow'] }, async () => {
  const wrong = GUIDE.replace(
    "insert('labels', { name })",
    "insert('labels', { name: 1n, colour: name })",
  )
  const other = kitWorkspace('empty', { ...FILES, ...workspaceSamples(wrong) })
  try {
    await expect(build(other.directory)).rejects.toMatchObject({
      code: 'WORKSPACE_INVALID',
      detail: expect.stringContaining('functions/labels.ts:'),
    })
  } finally {
    other.remove()
  }
})

test('a sample without a file, and a second sample of one file, are rejected', () => {
  const sample = (text: string) => `\n\`\`\`ts\n${text}\n\`\`\`\n`
  const file = '// functions/a.ts\nexport const a = 1'
  expect(() => workspaceSamples(sample('export const a = 1'))).toThrow(/its file/)
  expect(() => workspaceSamples(sample(file) + sample(file))).toThrow('two samples')
  expect(() => workspaceSamples(sample('// schema.ts\nexport default 1'))).toThrow(/schema/)
})

test('the guide has ten patterns, each with a test of this file', () => {
  const patterns = GUIDE.slice(GUIDE.indexOf('\n# Ten patterns'))
  const tested = readFileSync(import.meta.filename, 'utf8')
  const names = [...patterns.matchAll(/^## (.*)$/gm)].map(([, name]) => name!)
  expect(names).toHaveLength(10)
  for (const name of names) expect(tested).toContain(`test('${name}: `)
  expect(anchors(patterns)).toHaveLength(11)
})

describe('reads and writes', () => {
  test('a task is assigned, released, rewritten and removed', { tags: ['slow'] }, async () => {
    await using backend = await open()
    const person = await call(backend, 'people.register', { email: 'Ada@x.org', name: 'Ada' })
    const task = await call(backend, 'tasks.create', { title: 'one', priority: 3n })
    await call(backend, 'tasks.assign', { task, person, due: 5n })
    expect(await backend.query('boards.get', { task })).toMatchObject({ assignee: person, due: 5n })
    await call(backend, 'tasks.release', { task })
    expect(await backend.query('boards.get', { task })).not.toHaveProperty('due')
    await call(backend, 'tasks.assign', { task, person, due: 5n })
    await call(backend, 'tasks.rewrite', { task, title: 'two', priority: 1n })
    const rewritten = await ask<object>(backend, 'boards.get', { task })
    expect(rewritten).toMatchObject({ title: 'two', state: 'open' })
    expect(rewritten).not.toHaveProperty('assignee')
    await call(backend, 'tasks.remove', { task })
    expect(await backend.query('boards.get', { task })).toBeNull()
    const late = { task, person, due: 5n }
    await expect(call(backend, 'tasks.assign', late)).rejects.toMatchObject({
      code: 'APP_TASK_NOT_FOUND',
    })
    await expect(call(backend, 'tasks.remove', { task })).rejects.toMatchObject({
      code: 'FUNCTION_FAILED',
    })
  })

  test('ranges select by equality, bounds, absence and creation', { tags: ['slow'] }, async () => {
    await using backend = await open()
    const person = await call(backend, 'people.register', { email: 'a@x.org', name: 'Ada' })
    const tasks: string[] = []
    for (const priority of [2n, 7n, 7n, 4n]) {
      tasks.push(await call(backend, 'tasks.create', { title: `p${priority}`, priority }))
    }
    const titles = async (name: string, args = {}) =>
      (await ask<{ title: string }[]>(backend, name, args)).map(({ title }) => title)
    expect(await titles('boards.open')).toEqual(['p7', 'p7', 'p4', 'p2'])
    expect(await backend.query('boards.openPriority')).toBe(20n)
    for (const [i, due] of [30n, 10n, 20n].entries()) {
      await call(backend, 'tasks.assign', { task: tasks[i], person, due })
    }
    expect(await titles('boards.dueBefore', { person, time: 30n })).toEqual(['p7', 'p7'])
    expect(await titles('boards.unassigned')).toEqual(['p4'])
    const third = await ask<{ _createdAt: bigint }>(backend, 'boards.get', { task: tasks[2] })
    const since = { priority: 7n, time: third._createdAt }
    expect(await titles('reports.since', since)).toEqual(['p7'])
    expect(await titles('reports.since', { ...since, time: 0n })).toEqual(['p7', 'p7'])
  })

  test('pages continue at their cursor until the last one', { tags: ['slow'] }, async () => {
    await using backend = await open()
    const titles = Array.from({ length: 120 }, (_, i) => `task ${i}`)
    for (const title of titles) await call(backend, 'tasks.create', { title, priority: 0n })
    const sizes: number[] = []
    const seen: string[] = []
    let cursor: string | null = null
    for (let done = false; !done; ) {
      const page: { items: { title: string }[]; cursor: string | null; done: boolean } = await ask(
        backend,
        'pages.tasks',
        { cursor },
      )
      sizes.push(page.items.length)
      seen.push(...page.items.map(({ title }) => title))
      ;({ cursor, done } = page)
    }
    expect(sizes).toEqual([50, 50, 20])
    expect(seen).toEqual(titles.toReversed())
    const foreign = backend.query('pages.tasks', { cursor: 'AAAA' })
    await expect(foreign).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
  })

  test('a ticket has the defaults that its writers leave out', async () => {
    await using backend = await open()
    await call(backend, 'tickets.add', { title: 'one' })
    await call(backend, 'tickets.add', { title: 'two', urgency: 9n })
    const usual = await call(backend, 'tickets.addUsual', { title: 'three' })
    const tickets = (await backend.documents('tickets')) as { urgency: bigint }[]
    expect(tickets.map(({ urgency }) => urgency)).toEqual([5n, 9n, 3n])
    expect(await backend.query('tickets.usual')).toMatchObject([{ _id: usual, status: 'new' }])
    const summary = await backend.query('tickets.summary', { ticket: usual })
    expect(summary).toBe('three: new, urgency 3')
  })

  test('an address belongs to one person, however it is written', async () => {
    await using backend = await open()
    const ada = await call(backend, 'people.register', { email: 'Ada@X.org', name: 'Ada' })
    const again = call(backend, 'people.register', { email: 'ada@x.org', name: 'Grace' })
    await expect(again).rejects.toMatchObject({ code: 'APP_EMAIL_TAKEN' })
    expect(await call(backend, 'people.ensure', { email: 'ADA@x.org', name: 'A' })).toBe(ada)
    await call(backend, 'people.ensure', { email: 'grace@x.org', name: 'Grace' })
    expect(await backend.documents('people')).toHaveLength(2)
  })
})

describe('the pattern', () => {
  test('Many to many: a label has its tasks once, and loses them', async () => {
    await using backend = await open()
    const label = await call(backend, 'labels.create', { name: 'urgent' })
    const one = await call(backend, 'tasks.create', { title: 'one', priority: 0n })
    const two = await call(backend, 'tasks.create', { title: 'two', priority: 0n })
    for (const task of [one, two, one]) await call(backend, 'labels.add', { task, label })
    const ids = async () =>
      (await ask<{ _id: string }[]>(backend, 'labels.tasksWith', { label })).map(({ _id }) => _id)
    expect(await ids()).toEqual([one, two])
    await call(backend, 'tasks.remove', { task: two })
    expect(await ids()).toEqual([one])
    for (let i = 0; i < 2; i++) await call(backend, 'labels.remove', { task: one, label })
    expect(await ids()).toEqual([])
  })

  test('Counters: concurrent increments are all counted, over several shards', {
    tags: ['slow'],
  }, async () => {
    await using backend = await open()
    const calls = Array.from({ length: 60 }, () =>
      call(backend, 'counts.increment', { name: 'visits' }),
    )
    await Promise.all([...calls, call(backend, 'counts.increment', { name: 'others' })])
    expect(await backend.query('counts.read', { name: 'visits' })).toBe(60n)
    const shards = (await backend.documents('counts')) as object[]
    expect(shards.length).toBeGreaterThan(2)
  })

  test('Soft deletion: a note comes back, until the Cron removes it after 30 days', async () => {
    await using backend = await open()
    const [kept, deleted] = [
      await call(backend, 'notes.add', { text: 'kept' }),
      await call(backend, 'notes.add', { text: 'deleted' }),
    ]
    const texts = async () =>
      (await ask<{ text: string }[]>(backend, 'notes.list')).map(({ text }) => text)
    await call(backend, 'notes.remove', { note: deleted })
    expect(await texts()).toEqual(['kept'])
    await call(backend, 'notes.restore', { note: deleted })
    expect(await texts()).toEqual(['kept', 'deleted'])
    await call(backend, 'notes.remove', { note: deleted })
    const crons = { crons: false } as const
    await backend.advance({ days: 29 }, crons)
    await backend.advance({ hours: 2 })
    expect(await backend.documents('notes')).toHaveLength(2)
    await backend.advance({ days: 1 }, crons)
    await backend.advance({ hours: 2 })
    expect(await backend.documents('notes')).toMatchObject([{ _id: kept }])
  })

  test('Ownership: a draft of another user is not found', async () => {
    await using backend = await open()
    const [ada, grace] = [backend.asUser('ada'), backend.asUser('grace')]
    const draft = await call(ada, 'drafts.create', { text: 'one' })
    const change = (caller: Caller) => call(caller, 'drafts.change', { draft, text: 'two' })
    await expect(change(grace)).rejects.toMatchObject({ code: 'APP_DRAFT_NOT_FOUND' })
    await change(ada)
    expect(await ada.query('drafts.mine')).toMatchObject([{ text: 'two' }])
    expect(await grace.query('drafts.mine')).toEqual([])
  })

  test('Ordering: items stand where they were moved, however often', {
    tags: ['slow'],
  }, async () => {
    await using backend = await open()
    const items: Record<string, string> = {}
    for (const text of ['a', 'b', 'c', 'd']) {
      items[text] = await call(backend, 'items.append', { list: 'one', text })
    }
    const other = await call(backend, 'items.append', { list: 'other', text: 'x' })
    const order = async () =>
      (await ask<{ text: string }[]>(backend, 'items.list', { list: 'one' }))
        .map(({ text }) => text)
        .join('')
    const move = (item: string, after: string | null) =>
      call(backend, 'items.move', { item: items[item], after: after && items[after] })
    await move('d', null)
    expect(await order()).toBe('dabc')
    await move('d', 'c')
    expect(await order()).toBe('abcd')
    await move('b', 'b')
    expect(await order()).toBe('abcd')
    // Each move halves the gap behind "a", until no number is left in it.
    for (let i = 0; i < 70; i++) {
      await move(i % 2 === 0 ? 'c' : 'b', 'a')
      expect(await order()).toBe(i % 2 === 0 ? 'acbd' : 'abcd')
    }
    const foreign = call(backend, 'items.move', { item: items.a, after: other })
    await expect(foreign).rejects.toMatchObject({ code: 'APP_ITEM_NOT_FOUND' })
  })

  test('Search by prefix: case and accents make no difference', async () => {
    await using backend = await open()
    const names = ['Crème brûlée', 'CREAM', 'Crêpe', 'Ice cream', 'Dcre']
    for (const name of names) await call(backend, 'products.add', { name })
    const found = (text: string) => backend.query('products.search', { text })
    expect(await found('CRÈ')).toEqual(['CREAM', 'Crème brûlée', 'Crêpe'])
    expect(await found('crep')).toEqual(['Crêpe'])
    expect(await found('x')).toEqual([])
  })

  test('Batches: a chain of Mutations reaches every document', { tags: ['slow'] }, async () => {
    await using backend = await open()
    const priorities = Array.from({ length: 450 }, (_, i) => BigInt(i % 5))
    const create = (priority: bigint) => call(backend, 'tasks.create', { title: 'x', priority })
    await Promise.all(priorities.map(create))
    await call(backend, 'batches.finishUnimportant', { cursor: null })
    await backend.advance({ seconds: 1 })
    const tasks = await backend.documents('tasks')
    const left = (tasks as { state: string; priority: bigint }[]).filter(
      ({ state }) => state === 'open',
    )
    expect(left.every(({ priority }) => priority >= 3n)).toBe(true)
    expect(left).toHaveLength(180)
    expect(await backend.scheduled()).toHaveLength(2)
  })

  test('Trees: a folder has a path, stays out of itself, and goes with its content', async () => {
    await using backend = await open()
    const create = (name: string, parent: string | null) =>
      call(backend, 'folders.create', { name, parent })
    const top = await create('top', null)
    const inner = await create('inner', top)
    const leaf = await create('leaf', inner)
    const side = await create('side', null)
    expect(await backend.query('folders.path', { folder: leaf })).toBe('/top/inner/leaf')
    const move = (folder: string, parent: string | null) =>
      call(backend, 'folders.move', { folder, parent })
    for (const parent of [leaf, top]) {
      await expect(move(top, parent)).rejects.toMatchObject({ code: 'APP_INSIDE_ITSELF' })
    }
    await move(inner, side)
    expect(await backend.query('folders.path', { folder: leaf })).toBe('/side/inner/leaf')
    const again = create('inner', side)
    await expect(again).rejects.toMatchObject({ code: 'UNIQUE_VIOLATION' })
    const both = await Promise.allSettled([move(side, top), move(top, side)])
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await move(side, null)
    await call(backend, 'folders.remove', { folder: side })
    expect(await backend.query('folders.children', { parent: null })).toMatchObject([{ _id: top }])
    expect(await backend.documents('folders')).toHaveLength(1)
  })

  test('History: each save is a version, and one on an old version is rejected', async () => {
    await using backend = await open()
    const article = await call(backend, 'articles.create', { text: 'one' })
    const save = (version: bigint, text: string) =>
      call<bigint>(backend, 'articles.save', { article, version, text })
    expect(await save(1n, 'two')).toBe(2n)
    await expect(save(1n, 'lost')).rejects.toMatchObject({ code: 'APP_CHANGED_MEANWHILE' })
    expect(await backend.query('articles.history', { article })).toMatchObject([
      { text: 'two', version: 2n },
      { text: 'one', version: 1n },
    ])
  })

  test('Queues: a job has one worker, and comes back when its lease ends', async () => {
    await using backend = await open()
    interface Job {
      readonly _id: string
      readonly attempts: bigint
    }
    const ids = [
      await call(backend, 'jobs.add', { payload: 'a' }),
      await call(backend, 'jobs.add', { payload: 'b' }),
    ]
    const take = () => call<Job | null>(backend, 'jobs.take')
    const finish = ({ _id: job, attempts }: Job) => call(backend, 'jobs.finish', { job, attempts })
    const taken = await Promise.all([take(), take(), take()])
    const jobs = taken.filter((job) => job !== null)
    expect(jobs.map(({ _id }) => _id).toSorted()).toEqual(ids.toSorted())
    expect(await finish(jobs[0]!)).toBe(true)
    await backend.advance({ minutes: 6 })
    const second = (await take())!
    expect(second).toMatchObject({ _id: jobs[1]!._id, attempts: 2n })
    expect(await finish(jobs[1]!)).toBe(false)
    expect(await finish(second)).toBe(true)
    expect(await take()).toBeNull()
  })
})
