/**
 * The media types that a browser may show in place. None of them can carry a script: SVG, HTML, XML
 * and PDF are missing for that reason.
 */
const INLINE_TYPES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/bmp',
  'audio/mpeg',
  'audio/mp4',
  'audio/x-m4a',
  'audio/aac',
  'audio/flac',
  'audio/ogg',
  'audio/wav',
  'audio/x-wav',
  'audio/webm',
  'video/mp4',
  'video/mpeg',
  'video/ogg',
  'video/quicktime',
  'video/webm',
])

/** Returns whether a file of this type may be shown in place. Parameters do not matter. */
export function isInlineType(contentType: string): boolean {
  return INLINE_TYPES.has(contentType.split(';', 1)[0]!.trim().toLowerCase())
}
