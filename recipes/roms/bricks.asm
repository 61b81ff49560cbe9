; Bricks: a wall of six rows, a ball and a bat, five lives.
;
; The bat is the player's (joystick left and right), FIRE serves the ball. The upper two
; rows are worth 7 points a brick, the middle ones 4, the lower ones 1; behind the last
; brick a new wall stands. RESET begins a game.
;
;   80  points, two bytes of two digits each   reward = ram:0x80,bcd2
;   82  lives                                  lives  = ram:0x82
;                                              done   = ram:0x82==0
;
; dasm bricks.asm -f3 -obricks.bin
;
; With -DBREAKOUT=1 both lie where the rules of that title look for them, so that they can
; be compared with a program that knows titles only.
        processor 6502
        include "tia.inc"
        include "game.inc"

        IFCONST BREAKOUT
POINTS  = $CC
LIVES   = $B9
        ELSE
POINTS  = $80           ; hundreds, then the rest
LIVES   = $82
        ENDIF
BALLX   = $83           ; 0..159
BALLY   = $84           ; 0..87, in pairs of lines
SPEEDX  = $85           ; signed
SPEEDY  = $86
BATX    = $87           ; 0..143
CHANCE  = $88
FLYING  = $89           ; 0: the ball waits for FIRE
LEFT    = $8A           ; bricks that stand
LINE    = $8B
FRAME   = $8C
TENS    = $8D           ; offsets of digits: left, right
ONES    = $8F
LEFTBITS = $91
RIGHTBITS = $92
MASK    = $93
BRICKS  = $D0           ; six tables of six rows: what the playfield's three registers
                        ; hold in the left half, and in the right one

ROWS    = 6
TOP     = 12            ; the first pair of lines with bricks
BOTTOM  = TOP+ROWS*4
FIELD   = 88
BATY    = 82
BATWIDE = 16

        org $F000
Start   sei
        cld
        ldx #$FF
        txs
        lda #0
        tax
Clear   sta $00,x
        inx
        bne Clear
        lda #91
        sta CHANCE
        jsr NewGame

Frame   lda #2
        sta VSYNC
        sta WSYNC
        sta WSYNC
        sta WSYNC
        lda #0
        sta VSYNC
        lda #43         ; 37 lines of blank
        sta TIM64T
        inc FRAME
        lda SWCHB
        lsr
        bcs Played
        jsr NewGame
Played  jsr MoveBat
        jsr MoveBall
        jsr Digits
        jsr Place
BlankWait lda INTIM
        bne BlankWait
        sta WSYNC
        sta VBLANK      ; 0: the picture begins

        jsr DrawScore
        jsr DrawField

        lda #2
        sta WSYNC
        sta VBLANK
        lda #34         ; 30 lines of blank
        sta TIM64T
OverWait lda INTIM
        bne OverWait
        jmp Frame

; ---- the game ----

NewGame lda #0
        sta POINTS
        sta POINTS+1
        sta FLYING
        lda #5
        sta LIVES
        lda #72
        sta BATX
        ; falls through

NewWall lda #$FF
        ldx #ROWS*6-1
Build   sta BRICKS,x
        dex
        bpl Build
        lda #ROWS*20
        sta LEFT
        rts

; A shift register, stirred by what the player does.
Random  lda CHANCE
        asl
        bcc NoTap
        eor #$1D
NoTap   eor FRAME
        bne NotNull
        lda #$A5
NotNull sta CHANCE
        rts

MoveBat bit SWCHA       ; right: bit 7, left: bit 6
        bmi NotRight
        lda BATX
        cmp #160-BATWIDE-2
        bcs NotRight
        adc #3
        sta BATX
NotRight bit SWCHA
        bvs NotLeft
        lda BATX
        cmp #3
        bcc NotLeft
        sbc #3
        sta BATX
NotLeft rts

MoveBall lda FLYING
        bne Fly
        lda LIVES
        beq Rest
        bit INPT4       ; FIRE serves, from below the wall
        bmi Rest
        inc FLYING
        lda #44
        sta BALLY
        lda #1
        sta SPEEDY
        jsr Random
        and #63
        adc #48
        sta BALLX
        lda CHANCE
        and #2
        tax
        dex             ; -1 or 1
        stx SPEEDX
Rest    rts

Fly     lda BALLX       ; left and right, back from the edges
        clc
        adc SPEEDX
        cmp #158
        bcc KeepX
        jsr TurnX
        lda BALLX
        clc
        adc SPEEDX
KeepX   sta BALLX
        lda BALLY
        clc
        adc SPEEDY
        cmp #FIELD      ; above the top it is 255
        bcc KeepY
        jsr TurnY
        lda #0
KeepY   sta BALLY
        cmp #FIELD-2
        bcs Lost
        cmp #BATY-1
        bcs AtBat
        jmp AtWall

Lost    dec LIVES
        lda #0
        sta FLYING
        rts

AtBat   lda SPEEDY
        bmi Flown
        lda BALLX       ; from the bat's left edge, 0 to 17 where they meet
        sec
        sbc BATX
        clc
        adc #1
        cmp #BATWIDE+2
        bcs Flown
        tax
        lda Angles,x
        sta SPEEDX
TurnY   lda #0
        sec
        sbc SPEEDY
        sta SPEEDY
Flown   rts

TurnX   lda #0
        sec
        sbc SPEEDX
        sta SPEEDX
        rts

Angles  .byte $FE,$FE,$FE,$FE,$FF,$FF,$FF,$FF,$FF
        .byte $01,$01,$01,$01,$01,$02,$02,$02,$02

; The brick at the edge of the ball that goes first, if one stands there.
AtWall  lda SPEEDY
        asl             ; carry: upwards
        lda BALLY
        bcs Upper
        adc #1
Upper   sec
        sbc #TOP
        cmp #ROWS*4
        bcs Flown
        lsr
        lsr
        sta LINE        ; the row
        lda BALLX
        lsr
        lsr
        lsr             ; the column, 0 to 19
        ldx LINE
        cmp #10
        bcc Column
        sbc #10
        tay
        txa
        clc
        adc #ROWS*3
        tax
        tya
Column  tay
        txa
        clc
        adc Tables,y
        tax
        lda Masks,y
        sta MASK
        and BRICKS,x
        beq Flown
        lda MASK
        eor #$FF
        and BRICKS,x
        sta BRICKS,x
        jsr TurnY
        ldx LINE
        sed
        lda Worth,x
        clc
        adc POINTS+1
        sta POINTS+1
        lda POINTS
        adc #0
        sta POINTS
        cld
        dec LEFT
        bne Flown
        jmp NewWall

Tables  .byte 0,0,ROWS,ROWS,ROWS,ROWS,ROWS*2,ROWS*2,ROWS*2,ROWS*2
Masks   .byte $30,$C0,$C0,$30,$0C,$03,$03,$0C,$30,$C0
Worth   .byte 7,7,4,4,1,1

; ---- the picture ----

; Offsets of four digits: lives and hundreds, tens and ones.
Digits  lda LIVES
        jsr Five
        sta TENS
        lda POINTS
        and #15
        jsr Five
        sta ONES
        lda POINTS+1
        lsr
        lsr
        lsr
        lsr
        jsr Five
        sta TENS+1
        lda POINTS+1
        and #15
        jsr Five
        sta ONES+1
        rts

Five    sta LINE
        asl
        asl
        adc LINE
        rts

Place   lda BATX
        ldx #0
        jsr PlaceX
        lda BALLX
        ldx #4
        jsr PlaceX
        sta WSYNC
        sta HMOVE
        rts

; Thing X (0: the bat; 4: the ball) to pixel A.
        PLACE_X

; Ten lines of points, each row of a digit twice.
DrawScore lda #%00000010
        sta CTRLPF      ; halves in colours of their own
        lda #$1A
        sta COLUP0
        lda #$0C
        sta COLUP1
        SCORE_ROWS

; Whether the ball is on the pair of lines Y.
        MAC BALL
        tya
        sec
        sbc BALLY
        cmp #2
        lda #0
        bcs .none
        lda #2
.none   sta ENABL
        ENDM

; A line of row X: the right half's registers are written while the left half is drawn.
        MAC BRICKLINE
        sta WSYNC
        lda BRICKS,x
        sta PF0
        lda BRICKS+ROWS,x
        sta PF1
        lda BRICKS+ROWS*2,x
        sta PF2
        nop
        nop
        nop
        nop
        lda BRICKS+ROWS*3,x
        sta PF0
        lda BRICKS+ROWS*4,x
        sta PF1
        lda BRICKS+ROWS*5,x
        nop
        sta PF2
        ENDM

DrawField lda #%00010000
        sta CTRLPF      ; a ball two pixels wide
        lda #%00000101
        sta NUSIZ0      ; a bat of 16
        lda #$48
        sta COLUP0
        lda #$0E
        sta COLUPF
        ldy #0          ; pair of lines
Above   sta WSYNC
        sta WSYNC
        BALL
        iny
        cpy #TOP
        bne Above

        ldx #0          ; row
RowLoop sta WSYNC
        lda #0          ; a line between the rows
        sta PF0
        sta PF1
        sta PF2
        lda Colours,x
        sta COLUPF
        BALL
        lda #3
        sta LINE
        BRICKLINE
PairLoop iny
        BRICKLINE
        BALL
        BRICKLINE
        dec LINE
        bne PairLoop
        iny
        inx
        cpx #ROWS
        beq Field
        jmp RowLoop

Field   sta WSYNC
        lda #0
        sta PF0
        sta PF1
        sta PF2
        lda #$0E
        sta COLUPF
Below   sta WSYNC
        tya
        sec
        sbc #BATY
        cmp #2
        lda #0
        bcs NoBat
        lda #$FF
NoBat   sta GRP0
        sta WSYNC
        BALL
        iny
        cpy #FIELD
        bne Below
        sta WSYNC
        lda #0
        sta GRP0
        sta ENABL
        rts

Colours .byte $44,$36,$28,$1A,$C6,$86

        DIGIT_ROWS

        org $FFFC
        .word Start
        .word Start
