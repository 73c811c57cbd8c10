#!/bin/sh
# Draws the sample images again, with ImageMagick 6 and the DejaVu fonts. The results are checked
# in; nothing runs this by itself.
set -eu
cd "$(dirname "$0")"
convert=${CONVERT:-convert}

# A receipt: a fixed-width column of short lines and prices.
"$convert" -background white -fill black -font DejaVu-Sans-Mono -pointsize 26 \
  label:'CORNER BAKERY
12 Mill Street

Sourdough loaf       4.80
Rye rolls x 6        3.60
Apple cake           5.25
Coffee               2.90

TOTAL               16.55
Paid by card
Thank you!' \
  -bordercolor white -border 40 -colorspace Gray -depth 2 -strip receipt.png

# A page: two paragraphs of running text.
"$convert" -background white -fill black -font DejaVu-Serif -pointsize 28 -interline-spacing 6 \
  label:'A queue does not make slow work fast. It keeps slow
work from standing in the way. A request that would
take a minute is written down, answered at once, and
done when a worker is free.

What was written down must not be lost. If the power
fails between the answer and the work, the record is
still there when the machine comes back, and the
work is done then.' \
  -bordercolor white -border 60 -colorspace Gray -depth 4 -strip page.png

# A sign as a camera sees it: a gradient, a slight tilt, noise, blur and JPEG artefacts.
"$convert" -size 900x420 gradient:'#d8cfae-#b9ad85' -gravity center -fill '#2b2b33' \
  -font DejaVu-Sans-Bold -pointsize 62 -annotate -3x-3+0-70 'PLATFORM 7' \
  -font DejaVu-Sans -pointsize 44 -annotate -3x-3+0+60 'Night train to Vienna 22:45' \
  -distort SRT '-1.2' -seed 7 -attenuate 0.35 +noise Gaussian -blur 0x0.7 \
  -quality 72 -strip sign.jpg
