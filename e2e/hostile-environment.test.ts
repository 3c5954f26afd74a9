/**
 * An executable that is started in somebody else's directory, or with somebody else's variables,
 * runs its own code only. Each case plants something that leaves a file behind when it runs; the
 * last one shows that the trap works, on the runtime as it was before the build changed it.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import about from '../package.json' with { type: 'json' }
import { CLIENT, run, runSync, SERVER } from './harness.ts'

let directory: string
let mark: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-e2e-hostile-'))
  mark = join(directory, 'was-run')
  const leave = `require('node:fs').writeFileSync(${JSON.stringify(mark)}, '')`
  writeFileSync(join(directory, 'evil.js'), leave)
  writeFileSync(join(directory, 'index.js'), leave)
  writeFileSync(join(directory, 'version'), leave)
  writeFileSync(join(directory, 'package.json'), '{"scripts":{"version":"touch was-run"}}')
  writeFileSync(join(directory, 'tsconfig.json'), '{"compilerOptions":{"baseUrl":"."}}')
  writeFileSync(join(directory, 'bunfig.toml'), 'preload = ["./evil.js"]\n')
  const settings = ['BUN_OPTIONS=--preload ./evil.js', 'SERVICE_STATE_DIRECTORY=relative']
  for (const name of ['.env', '.env.local', '.env.production']) {
    writeFileSync(join(directory, name), `${settings.join('\n')}\n`)
  }
})
afterEach(() => rmSync(directory, { recursive: true }))

const HOSTILE: Record<string, Record<string, string>> = {
  'the directory alone': {},
  BUN_OPTIONS: { BUN_OPTIONS: '--preload ./evil.js' },
  BUN_BE_BUN: { BUN_BE_BUN: '1' },
  BUN_INSPECT_PRELOAD: { BUN_INSPECT_PRELOAD: './evil.js' },
  NODE_OPTIONS: { NODE_OPTIONS: '--require ./evil.js --import ./evil.js' },
  NODE_PATH: { NODE_PATH: '.' },
  everything: {
    BUN_OPTIONS: '--preload ./evil.js',
    BUN_BE_BUN: '1',
    BUN_INSPECT_PRELOAD: './evil.js',
    NODE_OPTIONS: '--require ./evil.js',
  },
}

for (const [name, environment] of Object.entries(HOSTILE)) {
  test(`${name} runs no code and changes no answer`, () => {
    for (const executable of [SERVER, CLIENT]) {
      const result = runSync([executable, 'version'], { directory, environment })
      expect(result.stderr).toBe('')
      expect(result.status).toBe(0)
      expect(result.stdout).toContain(about.version)
    }
    expect(existsSync(mark)).toBe(false)
  })
}

test('a .env file is not read for settings', () => {
  const result = runSync([SERVER, 'check'], { directory })
  expect(result.stderr).toContain('SERVER_CONFIGURATION_MISSING')
  expect(result.stderr).not.toContain('relative')
})

test('BUN_INSPECT opens no debugger and calls nobody', async () => {
  let called = false
  const listener = createServer((socket) => {
    called = true
    socket.destroy()
  })
  const path = join(directory, 'inspector.sock')
  await new Promise<void>((resolve) => listener.listen(path, resolve))
  for (const environment of [
    { BUN_INSPECT: '127.0.0.1:0', BUN_INSPECT_NOTIFY: `unix://${path}` },
    { BUN_INSPECT_CONNECT_TO: `unix://${path}` },
    { BUN_INSPECT: `ws+unix://${path}?wait=1` },
  ]) {
    const result = await run([SERVER, 'version'], { directory, environment })
    expect(result.stdout).toContain(about.version)
    expect(result.stderr).toBe('')
  }
  expect(called).toBe(false)
  await new Promise((resolve) => listener.close(resolve))
})

test('the runtime as it comes would have run the code', () => {
  runSync([process.execPath, '-e', '1'], {
    directory,
    environment: { BUN_OPTIONS: '--preload ./evil.js' },
  })
  expect(existsSync(mark)).toBe(true)
})
