import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { APPLICATION_CODES } from '../http/errors.ts'
import { TestSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { openListener } from './listeners.ts'

test('a connection is closed when it is idle after a long response', async () => {
  const listener = openListener({
    surface: 'application',
    listen: { host: '127.0.0.1', port: 0, loopback: true },
    app: {
      async fetch(_, binding) {
        binding.takeTime()
        await Bun.sleep(10)
        binding.returnTime()
        return new Response('done')
      },
    },
    codes: APPLICATION_CODES,
    system: new TestSystem(),
    log: memoryLog().log,
    tlsTerminated: false,
  })
  onTestFinished(() => listener.cut())
  const socket = connect(Number(listener.address.split(':')[1]), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n')
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toContain('200 OK')
  await once(socket, 'end')
})
