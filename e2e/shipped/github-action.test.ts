/**
 * The composite GitHub Action: its shape, and its shell steps against the executables.
 *
 * @module-tag slow
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { YAML } from 'bun'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type WorkloadIssuers, workloadIssuers } from '../../testing/providers/workload-issuers.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, type Result, run } from '../harness.ts'
import { inviteWorkloads, newJob, readEnvironmentId } from '../operators/workloads.ts'

interface Step {
  readonly name: string
  readonly id?: string
  readonly if?: string
  readonly shell: string
  readonly env: Record<string, string>
  readonly run: string
}
interface Action {
  readonly name: string
  readonly description: string
  readonly inputs: Record<string, { description: string; required?: boolean; default?: string }>
  readonly outputs: Record<string, { description: string; value: string }>
  readonly runs: { readonly using: string; readonly steps: readonly Step[] }
}

const TEXT = readFileSync(join(import.meta.dirname, '../../dist-config/github-action.yml'), 'utf8')
const ACTION = YAML.parse(TEXT) as Action
const REQUEST_TOKEN = 'request-token-of-the-runner'

let issuers: WorkloadIssuers
let app: Application
let github: ReturnType<typeof createServer>
let directory: string
/** Tokens that GitHub gave, oldest first. */
const given: string[] = []

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-action-'))
  issuers = await workloadIssuers()
  // GitHub's token service, as the runner's variables name it.
  github = createServer(async (request, response) => {
    const { status, body } = await tokenReply(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => github.listen(0, '127.0.0.1', resolve))
})

afterAll(async () => {
  await app?.installation.dispose()
  await issuers?.close()
  github?.closeAllConnections()
  github?.close()
  rmSync(directory, { recursive: true, force: true })
})

async function tokenReply({ url, headers }: IncomingMessage) {
  const { searchParams } = new URL(url ?? '', 'http://github.test')
  const isRunner = headers.authorization === `Bearer ${REQUEST_TOKEN}`
  if (!isRunner || searchParams.get('api-version') !== '2.0') return { status: 401, body: {} }
  const aud = searchParams.get('audience')
  given.push(await issuers.token('github', Date.now(), { aud }))
  return { status: 200, body: { count: given.length, value: given.at(-1) } }
}

/** An expression of the action with the inputs of a job in place of `inputs.*`. */
function evaluated(text: string, inputs: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{\{ inputs\.([a-z-]+) \}\}/g, (_, name: string) => {
    const value = inputs[name] ?? ACTION.inputs[name]?.default
    if (value === undefined) throw new Error(`there is no input ${name}`)
    return value
  })
}

interface Ran {
  readonly results: readonly Result[]
  readonly outputs: string
}

/** Runs the steps as the runner does, to the first that fails. */
async function runAction(inputs: Readonly<Record<string, string>>): Promise<Ran> {
  const { directory } = newJob(app)
  const files = { GITHUB_ENV: join(directory, 'env'), GITHUB_OUTPUT: join(directory, 'output') }
  for (const file of Object.values(files)) writeFileSync(file, '')
  mkdirSync(join(directory, 'temp'))
  const { port } = github.address() as AddressInfo
  const runner: Record<string, string> = {
    ...files,
    CI: 'true',
    HOME: directory,
    PATH: `/usr/bin:/bin:${dirname(CLIENT)}`,
    RUNNER_TEMP: join(directory, 'temp'),
    GITHUB_RUN_ID: '1234567890',
    SVC_ALLOW_LOOPBACK_HTTP: 'true',
    ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${port}/token?api-version=2.0`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
  }
  const results: Result[] = []
  for (const step of ACTION.runs.steps) {
    if (step.if !== undefined && (inputs.channel ?? '') === '') continue
    const variables = readFileSync(files.GITHUB_ENV, 'utf8').matchAll(/^(\w+)=(.*)$/gm)
    const own = Object.entries(step.env).map(([name, text]) => [name, evaluated(text, inputs)])
    const environment = {
      ...runner,
      ...Object.fromEntries([...variables].map(([, name, value]) => [name, value])),
      ...Object.fromEntries(own),
    }
    const result = await run(['bash', '-c', step.run], { directory, environment })
    results.push(result)
    if (result.status !== 0) break
  }
  return { results, outputs: readFileSync(files.GITHUB_OUTPUT, 'utf8') }
}

test('the action is a composite one whose expressions name its inputs', () => {
  expect(ACTION).toMatchObject({ name: 'svc', runs: { using: 'composite' } })
  for (const input of Object.values(ACTION.inputs)) {
    expect(input.description).not.toBe('')
    // An input is required, or it has a default.
    expect(input.required === true).toBe(input.default === undefined)
  }
  for (const step of ACTION.runs.steps) {
    expect(step).toMatchObject({ shell: 'bash', name: expect.any(String), run: expect.any(String) })
    // An expression in a script would let an input end the command that it stands in.
    expect(step.run).not.toContain('${{')
    expect(step.run).toMatch(/^set -euo pipefail$/m)
    expect(step.if ?? "inputs.channel != ''").toBe("inputs.channel != ''")
  }
  const used = [...TEXT.matchAll(/inputs\.([a-z-]+)/g)].map(([, name]) => name!)
  expect([...new Set(used)].toSorted()).toEqual(Object.keys(ACTION.inputs).toSorted())
  const [step] = Object.values(ACTION.outputs).map(({ value }) => /steps\.(\w+)\./.exec(value)?.[1])
  expect(ACTION.runs.steps.map(({ id }) => id)).toContain(step)
})

test('the steps of the action log in, link and release against the executables', async () => {
  const path = join(directory, 'workload-oidc.json')
  writeFileSync(path, JSON.stringify(issuers.file), { mode: 0o600 })
  app = await application(undefined, { SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG: path })
  await inviteWorkloads(app, ['github'])
  const inputs = {
    url: app.server.management,
    'environment-id': readEnvironmentId(app),
    audience: 'https://manage.example.com',
    workspace: 'workspace',
    channel: 'production',
    svc: CLIENT,
  }
  const { results, outputs } = await runAction(inputs)
  expect(results.filter(({ status }) => status !== 0)).toEqual([])
  expect(results).toHaveLength(3)
  const status = await app.svc(argv`status --remote --root ${app.installation.productRoot}`)
  const [{ releaseId }] = status.channels
  expect(outputs).toBe(`release-id=${releaseId}\n`)
  const [login] = results
  // The runner hides what a line of this form names, and nothing else prints the token.
  const [mask, ...rest] = login!.stdout.split('\n')
  expect(mask).toBe(`::add-mask::${given[0]}`)
  expect(rest.join() + login!.stderr).not.toContain(given[0]!.slice(-40))

  const linked = await runAction({ ...inputs, channel: '' })
  expect(linked.results.map(({ status }) => status)).toEqual([0, 0])
  expect(linked.outputs).toBe('')

  const wrong = await runAction({ ...inputs, audience: 'https://other.example.com' })
  expect(wrong.results.map(({ status }) => status)).toEqual([3])
})
