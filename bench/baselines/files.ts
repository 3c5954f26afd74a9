/**
 * The baseline of files: a bare server on the same runtime. PUT writes the body to a new file,
 * makes it durable and renames it; GET sends the file. Prints its port.
 */
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'

const directory = process.env.DIRECTORY!
let uploads = 0

async function store(request: Request, path: string): Promise<void> {
  const temporary = join(directory, `upload-${uploads++}`)
  const file = await open(temporary, 'wx', 0o600)
  try {
    for await (const chunk of request.body!) {
      for (let written = 0; written < chunk.length; ) {
        written += (await file.write(chunk, written)).bytesWritten
      }
    }
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
  const folder = await open(directory)
  await folder.sync()
  await folder.close()
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  async fetch(request) {
    const path = join(directory, new URL(request.url).pathname.slice(1))
    if (request.method === 'GET') return new Response(Bun.file(path))
    await store(request, path)
    return new Response(null, { status: 201 })
  },
})
process.stdout.write(`${server.port}\n`)
