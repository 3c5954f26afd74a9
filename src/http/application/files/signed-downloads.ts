/**
 * GET and HEAD /v1/files/signed-downloads/{signedDownload}: a file for `<img>`, `<video>` and
 * links, which send no header. The last segment of the path is the credential, so neither it nor
 * the path is written anywhere.
 */
import { findSigned, type SignedFile } from '../../../product/files/downloads.ts'
import { isInlineType } from '../../../value/files/inline-types.ts'
import { isSignedDownload } from '../../../wire/files/stored-files.ts'
import { disposition } from '../../file-answers.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import { answerDownload } from './downloads.ts'
import { chargeFailures, malformedPath } from './grants.ts'

/**
 * A page that shows the file loads nothing but the file, and runs nothing. The style is that of the
 * page that a browser makes for an image or a video.
 */
const POLICY =
  "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"

export async function sendSignedDownload(
  gateway: Gateway,
  incoming: Incoming,
  token: string,
): Promise<Response> {
  if (!isSignedDownload(token)) throw malformedPath('the token of a signed download')
  const file = await chargeFailures(gateway, incoming, () => findSigned(gateway.files, token))
  return answerDownload(gateway, incoming, file, headersOf(file))
}

function headersOf({ contentType, fileName, inline }: SignedFile): Record<string, string> {
  // An author shows files of users, who choose the types: a file of another type is saved.
  const kind = inline && isInlineType(contentType) ? 'inline' : 'attachment'
  return {
    'content-disposition': disposition(kind, fileName),
    'content-security-policy': POLICY,
    // A browser keeps the bytes, and asks each time whether it may still show them.
    'cache-control': 'private, no-cache',
    // The application is on another site than the page, and has to be shown there.
    'cross-origin-resource-policy': 'cross-origin',
    'referrer-policy': 'no-referrer',
  }
}
