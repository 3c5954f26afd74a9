/** Schemes that put one HMAC into one header: that of GitHub, and those an author describes. */
import { hmac } from '../../../system/digests.ts'
import type { HmacManifest } from '../../../value/http/routes.ts'
import type { SignatureScheme } from './signed-requests.ts'

/** `X-Hub-Signature-256: sha256=HEX`. */
export const github: SignatureScheme = {
  idHeader: 'x-github-delivery',
  toleranceSeconds: null,
  read(headers) {
    const signature = headers.get('x-hub-signature-256')
    return signature === null ? 'missing' : { id: null, time: null, signatures: [signature] }
  },
  covers: ({ body }) => [body],
  sign: (secret, parts) => `sha256=${hmac('sha256', secret, ...parts).toString('hex')}`,
  write: (signature, { id }) => ({ 'x-github-delivery': id!, 'x-hub-signature-256': signature }),
}

/** The scheme that `signature.hmac` describes. Hexadecimal digits may be upper case. */
export function describedHmac(manifest: HmacManifest): SignatureScheme {
  const { header, algorithm, encoding, prefix, timestampHeader, toleranceSeconds } = manifest
  return {
    idHeader: null,
    toleranceSeconds: toleranceSeconds ?? null,
    read(headers) {
      const signature = headers.get(header)
      const time = timestampHeader === undefined ? null : headers.get(timestampHeader)
      if (signature === null || (timestampHeader !== undefined && time === null)) return 'missing'
      if (!signature.startsWith(prefix)) return 'malformed'
      const text = signature.slice(prefix.length)
      return { id: null, time, signatures: [encoding === 'hex' ? text.toLowerCase() : text] }
    },
    covers: ({ body }, { time }) => [time === null ? '' : `${time}.`, body],
    sign: (secret, parts) => hmac(algorithm, secret, ...parts).toString(encoding),
    write: (signature, { time }) => ({
      [header]: `${prefix}${signature}`,
      ...(timestampHeader !== undefined && { [timestampHeader]: time! }),
    }),
  }
}
