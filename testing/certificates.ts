/** Creates certificates for names of the reserved domain `.test`, which only their tests trust. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  /** PEM of a self-signed certificate. */
  readonly certificate: string
  readonly key: string
}

export function selfSigned(...names: readonly string[]): Certificate {
  const directory = mkdtempSync(join(tmpdir(), 'svc-tls-'))
  const paths = [join(directory, 'key.pem'), join(directory, 'certificate.pem')] as const
  try {
    const alternatives = names.map((name) => `DNS:${name}`).join(',')
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
        '-subj',
        '/CN=test',
        '-addext',
        `subjectAltName=${alternatives}`,
        '-keyout',
        paths[0],
        '-out',
        paths[1],
      ],
      { stdio: 'ignore' },
    )
    return { key: readFileSync(paths[0], 'utf8'), certificate: readFileSync(paths[1], 'utf8') }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
