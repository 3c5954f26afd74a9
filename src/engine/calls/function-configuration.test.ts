/** `ctx.config` in real runners: which Functions may read it, and how it affects the cache. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const SECRET = 'sk_live_51H8xJ2eZvKYlo2C'
const USES = `uses: { network: [], secrets: ['API_KEY', 'NOT_SET'] }`
const FUNCTIONS = `
  variable: query((ctx, { name }) => ctx.config.variable(name), {
    arguments: { name: { type: 'string' } },
  }),
  both: query(async (ctx) => [await ctx.config.variable('A'), await ctx.config.variable('B')]),
  nested: query((ctx) => ctx.runQuery(ref('query', 'variable'), { name: 'A' })),
  swallowed: query(async (ctx) => {
    await ctx.config.variable('A')
    return 'always'
  }),
  constant: query(() => 'constant'),
  write: mutation((ctx) => ctx.config.variable('A')),
  fromQuery: query((ctx) => ctx.config.secret('API_KEY')),
  fromMutation: mutation((ctx) => ctx.config.secret('API_KEY')),
  slow: action(async (ctx) => {
    const first = await ctx.config.variable('A')
    let called
    do {
      await new Promise((resolve) => setTimeout(resolve, 10))
      called = await ctx.runQuery(ref('query', 'both'))
    } while (called[0] === first)
    return [first, await ctx.config.variable('A'), called]
  }),
  secret: action((ctx, { name }) => ctx.config.secret(name), {
    arguments: { name: { type: 'string' } },
    ${USES},
  }),
  undeclared: action((ctx) => ctx.config.secret('API_KEY')),
  variableIn: action((ctx) => ctx.config.variable('API_KEY')),
  caught: action(async (ctx) => {
    try {
      return await ctx.config.secret('NOT_SET')
    } catch (error) {
      return error.name + ': ' + error.message
    }
  }, { ${USES} }),
`

const configuration = new TestConfiguration()
let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { configuration })
})
afterAll(() => bench.close())
beforeEach(() =>
  configuration.change({ variables: { A: 'one', B: 'b' }, secrets: { API_KEY: SECRET } }),
)

const statistics = () => bench.engine.statistics().cache
const failure = (call: Promise<unknown>) =>
  call.then(
    () => 'none',
    (error: { code: string; detail?: string }) => `${error.code}: ${error.detail}`,
  )

describe('a variable', () => {
  test('a variable is read in a Query, a Mutation and an Action', async () => {
    expect(await bench.call('variable', { name: 'A' })).toBe('one')
    expect(await bench.call('write')).toBe('one')
    expect(await bench.call('nested')).toBe('one')
    configuration.change({ variables: { A: 'one', API_KEY: 'a variable' } })
    expect(await bench.call('variableIn')).toBe('a variable')
  })

  test.each(['NONE', 'API_KEY'])('a variable that does not exist is null: %s', async (name) => {
    expect(await bench.call('variable', { name })).toBeNull()
  })

  test.each(['a', '_A', '', 'A B', 'A"', 'A'.repeat(65)])(
    'a variable with an invalid name throws in the code: %j',
    async (name) => {
      expect(await failure(bench.call('variable', { name }))).toBe(
        'FUNCTION_FAILED: TypeError: ctx.config.variable needs a name such as "API_KEY"',
      )
    },
  )
})

describe('a result', () => {
  test('a result that read a variable is cached until the configuration changes', async () => {
    for (const value of ['two', 'three']) {
      for (let i = 0; i < 3; i++) await bench.call('both')
      const { hits } = statistics()
      await bench.call('both')
      expect(statistics().hits).toBe(hits + 1)
      configuration.change({ variables: { A: value, B: 'b' } })
      expect(await bench.call('both')).toEqual([value, 'b'])
    }
  })

  test.each(['nested', 'swallowed'])(
    'a result is not cached after a change where a nested read depends on it: %s',
    async (name) => {
      for (let i = 0; i < 3; i++) await bench.call(name)
      const { misses } = statistics()
      configuration.change({ variables: { A: 'two' } })
      const expected = name === 'nested' ? 'two' : 'always'
      expect(await bench.call(name)).toBe(expected)
      expect(statistics().misses).toBeGreaterThan(misses)
    },
  )

  test('a result that read no variable is cached through a change', async () => {
    for (let i = 0; i < 3; i++) await bench.call('constant')
    const { hits } = statistics()
    configuration.change({})
    await bench.call('constant')
    expect(statistics().hits).toBe(hits + 1)
  })

  test('a result of a run that started before a change is neither cached nor shared', async () => {
    for (let i = 0; i < 3; i++) await bench.call('both')
    for (let i = 0; i < 50; i++) {
      configuration.change({ variables: { A: `before ${i}`, B: 'b' } })
      const early = bench.call('both')
      // The call is in the runner now and has no result yet.
      await new Promise((resolve) => setImmediate(resolve))
      configuration.change({ variables: { A: `after ${i}`, B: 'b' } })
      const late = [bench.call('both'), bench.call('both')]
      expect(await early).toEqual([`before ${i}`, 'b'])
      expect(await Promise.all(late)).toEqual([
        [`after ${i}`, 'b'],
        [`after ${i}`, 'b'],
      ])
      expect(await bench.call('both')).toEqual([`after ${i}`, 'b'])
    }
  })

  test('a result of a run that started before a change and ends last is not cached', async () => {
    for (let i = 0; i < 3; i++) await bench.call('both')
    for (let i = 0; i < 50; i++) {
      configuration.change({ variables: { A: `before ${i}`, B: 'b' } })
      const early = bench.call('both')
      await new Promise((resolve) => setImmediate(resolve))
      configuration.change({ variables: { A: `after ${i}`, B: 'b' } })
      expect(await early).toEqual([`before ${i}`, 'b'])
      expect(await bench.call('both')).toEqual([`after ${i}`, 'b'])
    }
  })
})

test('an Action reads the configuration at its start, a called Query at its own', async () => {
  const running = bench.call('slow')
  await expect.poll(() => bench.pool.statistics().inFlight).toBe(1)
  configuration.change({ variables: { A: 'two', B: 'b' } })
  expect(await running).toEqual(['one', 'one', ['two', 'b']])
})

describe('a secret', () => {
  test('a secret is read in an Action that declares it', async () => {
    expect(await bench.call('secret', { name: 'API_KEY' })).toBe(SECRET)
    configuration.change({ secrets: { API_KEY: 'rotated' } })
    expect(await bench.call('secret', { name: 'API_KEY' })).toBe('rotated')
  })

  test.each([
    ['fromQuery', 'TypeError: ctx.config.secret: only an Action reads secrets'],
    ['fromMutation', 'TypeError: ctx.config.secret: only an Action reads secrets'],
    ['undeclared', 'TypeError: ctx.config.secret("API_KEY"): add it to uses.secrets'],
  ])('a secret cannot be read by another Function: %s', async (name, message) => {
    const failed = await failure(bench.call(name))
    expect(failed).toContain(`FUNCTION_FAILED: ${message}`)
    expect(failed).not.toContain(SECRET)
  })

  test('a secret that the Action does not declare is rejected, set or not', async () => {
    const rejection = (name: string) =>
      `FUNCTION_FAILED: TypeError: ctx.config.secret("${name}"): ` +
      'add it to uses.secrets of this Action'
    configuration.change({ secrets: { OTHER: SECRET } })
    expect(await failure(bench.call('secret', { name: 'OTHER' }))).toBe(rejection('OTHER'))
    expect(await failure(bench.call('secret', { name: 'NEVER' }))).toBe(rejection('NEVER'))
  })

  test('a secret that is not set throws with the command that sets it', async () => {
    expect(await bench.call('caught')).toBe(
      'Error: ctx.config.secret("NOT_SET"): it is not set: ' +
        'svc config set NOT_SET --secret, for svc dev in .env.local',
    )
  })

  test('never appears in the log', () => {
    expect(bench.log.text()).not.toContain(SECRET)
  })
})
