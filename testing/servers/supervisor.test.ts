import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort, isFree } from './ports.ts'
import { superviseProcess } from './supervisor.ts'

const options = { directory: '/', environment: { PATH: '/usr/bin:/bin' } }

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function untilGone(pid: number): Promise<boolean> {
  const deadline = performance.now() + 60_000
  while (isAlive(pid) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return !isAlive(pid)
}

test('the exit status of the child is reported', async () => {
  const child = superviseProcess(['/bin/sh', '-c', 'exit 7'], { ...options, signal: 'TERM' })
  expect(await child.ended).toBe(7)
})

test('stop sends the given signal', async () => {
  const script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"
  const child = superviseProcess(['/bin/sh', '-c', script], { ...options, signal: 'TERM' })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  expect(await child.stop()).toBe(3)
})

test('a killed child has given up its address once it has ended', async () => {
  const port = await freePort()
  // The kernel takes a while to free the memory, and closes sockets only then.
  const script = `globalThis.kept = Buffer.alloc(256 * 2 ** 20, 1)
    const fetch = () => new Response()
    Bun.serve({ hostname: '127.0.0.1', port: ${port}, reusePort: false, fetch })
    console.log('ready')`
  const child = superviseProcess([process.execPath, '-e', script], { ...options, signal: 'TERM' })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  child.kill()
  expect(await child.ended).toBe(128)
  expect(await isFree(port)).toBe(true)
})

test('a child ends with its parent, even if that is killed', async () => {
  const module = join(import.meta.dirname, 'supervisor.ts')
  const parent = spawn(
    process.execPath,
    [
      '-e',
      `import { superviseProcess } from ${JSON.stringify(module)}
       const child = superviseProcess(['/bin/sh', '-c', 'echo $$; exec sleep 60'],
         { signal: 'TERM', directory: '/', environment: { PATH: '/usr/bin:/bin' } })
       child.stdout.on('data', (text) => process.stdout.write(text))`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const pid = await new Promise<number>((resolve) =>
    parent.stdout.once('data', (data: Buffer) => resolve(Number(data.toString()))),
  )
  expect(isAlive(pid)).toBe(true)
  parent.kill('SIGKILL')
  expect(await untilGone(pid)).toBe(true)
})
