/**
 * `npm start` in a directory of its own: the printed commands work unchanged, Ctrl-C leaves no
 * process behind, and the next start continues with the same keys and data.
 *
 * @module-tag slow
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { superviseProcess } from '../../testing/servers/supervisor.ts'
import { runSync } from '../harness.ts'

/** The address of the page, behind the last line of progress. */
const PAGE = /Ready\.\n\nOpen the chat.*\n\n {2}(http:\S+)\n/
/** The address that opens the console. */
const START = /^http:\/\/127\.0\.0\.1:[0-9]+\/start\//
const SCRIPT = join(import.meta.dirname, '../../build/quickstart.ts')

let folder: string
let home: string
let running: ChildProcess | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-e2e-quickstart-'))
  // PostgreSQL runs as another account if the tests run as root.
  chmodSync(folder, 0o711)
  home = join(folder, 'home')
})
afterEach(() => {
  running?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

interface Started {
  readonly output: string
  readonly commands: readonly string[]
  readonly publicKey: string
  stop(signal: NodeJS.Signals): Promise<number | null>
}

function start(): Promise<Started> {
  const child = spawn(process.execPath, [SCRIPT], {
    env: { ...process.env, SVC_QUICKSTART_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running = child
  let output = ''
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  return new Promise((resolve, reject) => {
    const read = (data: string): void => {
      output += data
      if (!output.includes('Ctrl-C stops everything')) return
      const stop = (signal: NodeJS.Signals): Promise<number | null> => {
        child.kill(signal)
        return ended
      }
      const publicKey = /rk_pub_v1_[\w-]{43}/.exec(output)?.[0] ?? ''
      resolve({ output, commands: commandsIn(output), publicKey, stop })
    }
    child.stdout.setEncoding('utf8').on('data', read)
    child.stderr.setEncoding('utf8').on('data', read)
    void ended.then((status) => reject(new Error(`ended with ${status}: ${output}`)))
  })
}

/** Returns the printed commands, which empty lines separate. */
function commandsIn(output: string): string[] {
  return output.split('\n\n').filter((part) => /^(curl|SERVICE_CONFIG_HOME=)/.test(part.trim()))
}

function paste(command: string): string {
  const { PATH = '' } = process.env
  const result = runSync(['/bin/sh', '-c', command], { environment: { PATH } })
  expect(result.stderr).toBe('')
  expect(result.status).toBe(0)
  return result.stdout
}

/** Returns the answer of the command of an agent to the first message of an editor. */
function greetedBy(command: string): unknown {
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'an editor', version: '1' },
  }
  const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
  return JSON.parse(paste(`echo '${JSON.stringify(hello)}' | ${command.trim()}`))
}

/** Returns the first line of JSON that a command prints, and interrupts it. */
async function firstLine(command: string): Promise<unknown> {
  const { PATH = '' } = process.env
  const watching = superviseProcess(['/bin/sh', '-c', `exec env ${command.trim()} --json`], {
    signal: 'INT',
    directory: '/',
    environment: { PATH },
  })
  try {
    for await (const line of createInterface({ input: watching.stdout })) return JSON.parse(line)
    return null
  } finally {
    await watching.stop()
  }
}

/** Returns the processes with the directory in their command line or environment. */
function leftovers(): string[] {
  const { stdout } = spawnSync('ps', ['-eww', '-o', 'pid=,args='], { encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line.includes(folder))
}

/** Only a hang takes this long: beside other tests a start and its commands take minutes. */
const TIMEOUT = { timeout: 900_000 }

test(
  'the printed commands work, Ctrl-C ends all processes, a second start resumes',
  TIMEOUT,
  async () => {
    const first = await start()
    // The address of the page comes first, then one plain command; a file has all of them.
    expect(first.output).toMatch(PAGE)
    const address = PAGE.exec(first.output)![1]!
    const page = await fetch(address)
    expect(await page.text()).toContain('/main.js')
    expect(await (await fetch(`${address}/main.js`)).text()).toContain(first.publicKey)
    expect((await fetch(`${address}/missing`)).status).toBe(404)
    const application = /^ {2}Application API +(\S+)/m.exec(first.output)![1]
    const crossOrigin = await fetch(`${application}/v1/query`, {
      method: 'POST',
      headers: { origin: address },
    })
    expect(crossOrigin.headers.get('access-control-allow-origin')).toBe(address)
    expect(first.commands.length).toBe(2)
    const all = commandsIn(readFileSync(join(home, 'commands.txt'), 'utf8'))
    const [query = '', mutation = '', hook = '', deliveries = '', ...operator] = all
    const [status = '', check = '', browse = '', agents = '', ...others] = operator
    const [doctor = '', backups = '', verify = '', watch = ''] = others
    expect(all.length).toBe(12)
    expect(first.commands.map((each) => each.trim())).toEqual([browse.trim(), agents.trim()])
    expect(paste(query)).toContain('It works.')
    expect(JSON.parse(paste(mutation))).toMatchObject({
      status: 'ok',
      metadata: { kind: 'mutation', replayed: false },
    })
    expect(JSON.parse(paste(mutation))).toMatchObject({ metadata: { replayed: true } })
    expect(paste(query)).toContain('Hello from curl')
    const { deliveryId } = JSON.parse(paste(hook))
    expect(JSON.parse(paste(hook))).toMatchObject({ status: 'accepted', deliveryId })
    // The handler runs after the answer.
    let messages = ''
    while (!messages.includes('Hello from another service')) messages = paste(query)
    expect(messages.split('Hello from another service')).toHaveLength(2)
    expect(paste(deliveries)).toContain(deliveryId)
    expect(paste(status)).toContain('production')
    expect(paste(`${check} 2>&1`)).toContain('Nothing was changed.')
    const opened = await firstLine(browse)
    expect(opened).toMatchObject({ event: 'ready', url: expect.stringMatching(START) })
    expect(greetedBy(agents)).toMatchObject({ result: { serverInfo: { name: 'svc' } } })
    // What it finds is up to the machine.
    expect(paste(`${doctor} || true`)).toMatch(/^\d+ checks: \d+ ok, /m)
    // The server makes its first backup while it answers calls.
    await expect.poll(() => paste(backups), { interval: 100, timeout: 600_000 }).toContain('bkp_')
    expect(paste(`${verify} 2>&1`)).toContain('Restored documents: ')
    expect(await firstLine(watch)).toMatchObject({ revision: '1', version: 1 })
    const secret = join(home, 'keys/confidential.key')
    const secretKey = readFileSync(secret, 'utf8')
    expect(secretKey.trim()).toMatch(/^rk_sec_v1_[\w-]{43}$/)
    expect(statSync(secret).mode & 0o777).toBe(0o600)
    expect(first.output).not.toContain(secretKey.trim())
    expect(leftovers().length).toBeGreaterThan(0)
    expect(await first.stop('SIGINT')).toBe(0)
    expect(leftovers()).toEqual([])

    const second = await start()
    expect(second.publicKey).toBe(first.publicKey)
    expect(readFileSync(secret, 'utf8')).toBe(secretKey)
    expect(second.output).toContain(address)
    expect(paste(query)).toContain('Hello from curl')
    expect(await second.stop('SIGTERM')).toBe(0)
    expect(leftovers()).toEqual([])
  },
)

test('a stop during the start leaves no process behind', TIMEOUT, async () => {
  const child = spawn(process.execPath, [SCRIPT], {
    env: { ...process.env, SVC_QUICKSTART_HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running = child
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (data: string) => {
      if (data.includes('Starting the server')) resolve()
    })
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGINT')
  expect(await ended).toBe(0)
  expect(leftovers()).toEqual([])
})

test('a kill without a chance to clean up ends all processes', TIMEOUT, async () => {
  const first = await start()
  expect(first.publicKey).not.toBe('')
  running?.kill('SIGKILL')
  await expect.poll(leftovers, { interval: 100 }).toEqual([])
})
