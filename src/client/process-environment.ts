/** The environment of the process. No other file of the client uses `process`. */
import { homedir } from 'node:os'
import process from 'node:process'
import { Fault } from '../errors/fault.ts'
import { requireVerifiedPeers } from '../system/peers.ts'
import { realSystem } from '../system/system.ts'
import type { ClientEnvironment, OutputStream } from './environment.ts'
import { errorCode } from './files.ts'
import { createFetch } from './network/fetch.ts'
import { openBrowser } from './oidc/browsers.ts'
import { pause } from './pauses.ts'
import { runGit } from './provenance/git.ts'

export function processEnvironment(): ClientEnvironment {
  requireVerifiedPeers(process.env)
  return {
    system: realSystem(),
    platform: process.platform,
    homeDirectory: homedir(),
    workingDirectory: process.cwd(),
    program: { path: process.execPath, userId: process.geteuid?.() ?? null },
    stdin: { isTTY: process.stdin.isTTY === true, readAll, readLine },
    stdout: outputStream(process.stdout, { forgives: isReaderGone }),
    // A failure to write to stderr can only be reported on stderr.
    stderr: outputStream(process.stderr, { forgives: () => true }),
    pipes: () => ({ input: process.stdin, output: process.stdout }),
    fetch: createFetch(variable),
    variable,
    git: runGit,
    pause,
    openBrowser: (url) => openBrowser(process.platform, url),
    onInterrupt,
  }
}

function variable(name: string): string | undefined {
  return process.env[name]
}

/** Tells whether the reader has closed the pipe, as `head` does, which is not a failure. */
function isReaderGone(error: Error): boolean {
  return errorCode(error) === 'EPIPE'
}

function outputStream(
  stream: NodeJS.WriteStream,
  { forgives }: { readonly forgives: (error: Error) => boolean },
): OutputStream {
  // The callback of each write reports its failure.
  stream.on('error', () => {})
  return {
    isTTY: stream.isTTY === true,
    write: (text) =>
      new Promise((resolve, reject) => {
        stream.write(text, (error) => {
          if (!error || forgives(error)) resolve()
          else reject(unwritten(error))
        })
      }),
  }
}

function unwritten(cause: Error): Fault {
  return new Fault('CLIENT_FILE_FAILED', {
    detail: `The result could not be printed: ${errorCode(cause) ?? cause.message}.`,
    cause,
  })
}

async function readAll(bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of process.stdin) {
    const bytes: Uint8Array = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    length += bytes.length
    if (length > bytesMax) return null
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

const LINE_LENGTH_MAX = 4_096

/** Reads a line in raw mode, since a terminal in line mode shows what is typed. */
function readLine({ echo }: { readonly echo: boolean }): Promise<string | null> {
  const input = process.stdin
  return new Promise((resolve) => {
    let line = ''
    const finish = (result: string | null): void => {
      input.off('data', onData)
      input.setRawMode(false)
      input.pause()
      process.stderr.write('\n')
      resolve(result)
    }
    const onData = (chunk: Buffer | string): void => {
      for (const character of chunk.toString()) {
        const ends = character === '\r' || character === '\n'
        if (ends || character === '\u0003' || character === '\u0004') {
          finish(ends ? line : null)
          return
        }
        if (character === '\u007f' || character === '\b') {
          if (echo && line !== '') process.stderr.write('\b \b')
          line = line.slice(0, -1)
        } else if (character >= ' ' && line.length < LINE_LENGTH_MAX) {
          line += character
          if (echo) process.stderr.write(character)
        }
      }
    }
    input.setRawMode(true)
    input.resume()
    input.on('data', onData)
  })
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function onInterrupt(listener: () => void): () => void {
  const undo = (): void => {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
  const onSignal = (): void => {
    undo()
    listener()
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  return undo
}
