import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { installation, productEnvironment } from './harness.ts'

test('a server whose second address is taken ends and gives back what it had opened', async () => {
  const of = await installation()
  onTestFinished(() => of.dispose())
  const made = await of.svc(['init', '--root', of.productRoot, '--workspace', of.workspace])
  expect(made.status, made.stderr).toBe(0)
  const [host = '', port] = of.applicationListen.split(':')
  const other = createServer().listen(Number(port), host)
  await once(other, 'listening')
  const refused = of.start(productEnvironment(of))
  await expect(refused).rejects.toThrow('ended with status 1')
  await expect(refused).rejects.toThrow(/SERVER_LISTEN_FAILED: .*application.*Check that nothing/)
  other.close()
  const server = await of.start(productEnvironment(of))
  expect(server.application).toBe(`http://${of.applicationListen}`)
})
