import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { argv } from '../argv.ts'
import { createInstallation, productEnvironment } from '../harness.ts'

test('a server whose second port is in use ends and releases the first one', async () => {
  const installation = await createInstallation()
  onTestFinished(() => installation.dispose())
  const made = await installation.svc(
    argv`init --root ${installation.productRoot} --workspace ${installation.workspace}`,
  )
  expect(made.status, made.stderr).toBe(0)
  const [host = '', port] = installation.applicationListen.split(':')
  const other = createServer().listen(Number(port), host)
  await once(other, 'listening')
  const starting = installation.start(productEnvironment(installation))
  await expect(starting).rejects.toThrow('ended with status 1')
  await expect(starting).rejects.toThrow(/SERVER_LISTEN_FAILED: .*application.*Check that nothing/)
  other.close()
  const server = await installation.start(productEnvironment(installation))
  expect(server.application).toBe(`http://${installation.applicationListen}`)
})
